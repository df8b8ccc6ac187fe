// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/view/container_parts.h"

#include <string_view>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include "pkg/base/text_hash.h"
#include "pkg/base/utf8.h"
#include "pkg/nri/convert.h"

namespace resmgr::nri {
namespace {

std::string_view PropagationOption(Mount::Propagation propagation) {
  switch (propagation) {
    case Mount::Propagation::kHostToContainer:
      return "rslave";
    case Mount::Propagation::kBidirectional:
      return "rshared";
    case Mount::Propagation::kPrivate:
      break;
  }
  return "rprivate";
}

std::string_view AccessOption(const Mount& mount) {
  if (mount.recursive_read_only) return "rro";
  return mount.read_only ? "ro" : "rw";
}

void AddNamespace(std::string_view type, NamespaceMode mode, const api::PodSandbox& pod,
                  api::LinuxContainer& linux) {
  if (mode == NamespaceMode::kNode) return;
  api::LinuxNamespace& added = *linux.add_namespaces();
  added.set_type(std::string(type));
  if (mode != NamespaceMode::kPod) return;
  for (const api::LinuxNamespace& of_pod : pod.linux().namespaces())
    if (of_pod.type() == type) added.set_path(of_pod.path());
}

}  // namespace

void AddEnvironment(const Environment& environment,
                    google::protobuf::RepeatedPtrField<std::string>& env) {
  // By name, a view into the entry itself: entries do not move.
  absl::flat_hash_map<std::string_view, int> places;
  places.reserve(static_cast<size_t>(env.size()) + environment.size());
  const auto name_of = [&env](int i) {
    return std::string_view(env[i]).substr(0, env[i].find('='));
  };
  for (int i = 0; i < env.size(); ++i)
    places.emplace(name_of(i), i);
  for (size_t i = 0; i < environment.size(); ++i) {
    std::string& added = *env.Add();
    added = Utf8Repaired(environment.Text(i));
    const int last = env.size() - 1;
    const auto [place, is_new] = places.emplace(name_of(last), last);
    if (is_new) continue;
    // A later value of a name replaces the former one.
    const int former = place->second;
    places.erase(place);
    env.SwapElements(former, last);
    env.RemoveLast();
    places.emplace(name_of(former), former);
  }
}

bool AppendPlainEnvironment(const Environment& image, const Environment& own,
                            FieldWriter& container) {
  if (!IsAscii(image.texts()) || !IsAscii(own.texts())) return false;
  const size_t count = image.size() + own.size();
  absl::flat_hash_set<std::string_view, TextHash> names;
  names.reserve(count);
  for (const Environment* const environment : {&image, &own}) {
    for (const auto& [name, value] : *environment) {
      if (name.find('=') != std::string_view::npos || !names.insert(name).second) return false;
    }
  }
  container.Reserve(image.texts().size() + own.texts().size() + count * FieldWriter::kMaxVarint);
  for (const Environment* const environment : {&image, &own}) {
    for (size_t i = 0; i < environment->size(); ++i)
      container.Bytes(api::Container::kEnvFieldNumber, environment->Text(i));
  }
  return true;
}

void AddMounts(const std::vector<Mount>& mounts,
               google::protobuf::RepeatedPtrField<api::Mount>& to) {
  for (const Mount& mount : mounts) {
    api::Mount& added = *to.Add();
    added.set_destination(Utf8Repaired(mount.container_path));
    const bool of_image = !mount.image.empty() && mount.host_path.empty();
    added.set_type(of_image ? "image" : "bind");
    added.set_source(Utf8Repaired(of_image ? mount.image : mount.host_path));
    added.add_options(mount.non_recursive ? "bind" : "rbind");
    added.add_options(std::string(PropagationOption(mount.propagation)));
    added.add_options(std::string(AccessOption(mount)));
  }
}

void AddNamespaces(const ContainerSecurity& security, const api::PodSandbox& pod,
                   api::LinuxContainer& linux) {
  AddNamespace("network", security.network, pod, linux);
  AddNamespace("pid", security.pid, pod, linux);
  AddNamespace("ipc", security.ipc, pod, linux);
  // The host's name belongs to the network namespace.
  AddNamespace("uts", security.network, pod, linux);
  AddNamespace("mount", NamespaceMode::kContainer, pod, linux);
}

void AddSeccomp(const ContainerSecurity& security, api::LinuxContainer& linux) {
  if (!security.seccomp) return;
  api::SecurityProfile& profile = *linux.mutable_seccomp_profile();
  profile.set_profile_type(
      static_cast<api::SecurityProfile_ProfileType>(static_cast<int>(security.seccomp->kind)));
  profile.set_localhost_ref(Utf8Repaired(security.seccomp->path));
}

void SetHooks(const std::vector<OciHook>& hooks, api::Hooks& to) {
  to.Clear();
  for (OciHook hook : hooks) {
    hook.path = Utf8Repaired(hook.path);
    for (std::string& arg : hook.args)
      arg = Utf8Repaired(arg);
    for (std::string& variable : hook.env)
      variable = Utf8Repaired(variable);
    AddHook(hook, to);
  }
}

void SetLimits(const std::vector<ResourceLimit>& limits, api::Container& container) {
  container.clear_rlimits();
  for (const ResourceLimit& limit : limits) {
    api::POSIXRlimit& added = *container.add_rlimits();
    added.set_type(Utf8Repaired(limit.type));
    added.set_hard(limit.hard);
    added.set_soft(limit.soft);
  }
}

}  // namespace resmgr::nri
