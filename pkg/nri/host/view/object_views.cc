// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/view/object_views.h"

#include <array>
#include <string>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <google/protobuf/arena.h>
#include <google/protobuf/map.h>
#include <google/protobuf/repeated_field.h>

#include "pkg/base/ids.h"
#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"
#include "pkg/nri/convert.h"

namespace resmgr::nri {
namespace {

constexpr std::string_view kSha256 = "sha256:";
// The container annotations from which containerd and CRI-O read classes and CDI devices.
constexpr std::string_view kBlockioAnnotation = "io.kubernetes.cri.blockio-class";
constexpr std::string_view kRdtAnnotation = "io.kubernetes.cri.rdt-class";
constexpr std::string_view kCdiAnnotations = "cdi.k8s.io/";

using Strings = google::protobuf::RepeatedPtrField<std::string>;

void CopyStrings(const StringMap& from, google::protobuf::Map<std::string, std::string>& to) {
  for (const auto& [name, value] : from)
    to[Utf8Repaired(name)] = Utf8Repaired(value);
}

void CopyNamespaces(const std::vector<LinuxNamespace>& from,
                    google::protobuf::RepeatedPtrField<api::LinuxNamespace>& to) {
  to.Clear();
  for (const LinuxNamespace& item : from) {
    api::LinuxNamespace& added = *to.Add();
    added.set_type(Utf8Repaired(item.type));
    added.set_path(Utf8Repaired(item.path));
  }
}

void AddTexts(const std::vector<std::string>& from, Strings& to) {
  for (const std::string& text : from)
    to.Add(Utf8Repaired(text));
}

// A command replaces the image's entry point, and with that the image's arguments (Kubernetes,
// "Define a Command and Arguments for a Container").
void AddArgs(const ContainerDetails& details, const ImageFacts* image, Strings& args) {
  if (!details.command.empty()) {
    AddTexts(details.command, args);
    return AddTexts(details.args, args);
  }
  if (image == nullptr) return;
  AddTexts(image->entrypoint, args);
  AddTexts(details.args.empty() ? image->command : details.args, args);
}

void AddImage(const ContainerDetails& details, const ImageFacts* facts, api::Image& image) {
  image.set_name(
      Utf8Repaired(details.specified_image.empty() ? details.image : details.specified_image));
  if (details.image.starts_with(kSha256)) image.set_config_digest(Utf8Repaired(details.image));
  if (facts == nullptr) return;
  const size_t at = facts->digest.find('@');
  if (at != std::string::npos) image.set_digest(Utf8Repaired(facts->digest.substr(at + 1)));
}

void AddUser(const ContainerSecurity& security, api::Container& out) {
  if (!security.user) return;
  api::User& user = *out.mutable_user();
  user.set_uid(static_cast<uint32_t>(*security.user));
  user.set_gid(static_cast<uint32_t>(security.group.value_or(0)));
  for (const int64_t group : security.supplemental_groups)
    user.add_additional_gids(static_cast<uint32_t>(group));
}

void AddCdiDevices(const StringMap& annotations, const ContainerDetails& details,
                   api::Container& out) {
  for (const std::string& name : details.cdi_devices)
    out.add_cdi_devices()->set_name(Utf8Repaired(name));
  for (auto it = annotations.lower_bound(kCdiAnnotations);
       it != annotations.end() && it->first.starts_with(kCdiAnnotations); ++it) {
    for (const std::string_view name : Split(it->second, ','))
      out.add_cdi_devices()->set_name(Utf8Repaired(name));
  }
}

void AddClasses(const StringMap& annotations, api::LinuxResources& resources) {
  const auto blockio = annotations.find(kBlockioAnnotation);
  if (blockio != annotations.end()) {
    resources.mutable_blockio_class()->set_value(Utf8Repaired(blockio->second));
  }
  const auto rdt = annotations.find(kRdtAnnotation);
  if (rdt != annotations.end()) {
    resources.mutable_rdt_class()->set_value(Utf8Repaired(rdt->second));
  }
}

void AddLinux(const LinuxResources& requested, const StringMap& annotations,
              const ContainerDetails& details, api::LinuxContainer& linux) {
  api::LinuxResources& resources = *linux.mutable_resources();
  resources = ToNriResources(requested, details.memory_swap_limit, details.unified);
  AddClasses(annotations, resources);
  if (requested.oom_score_adj) linux.mutable_oom_score_adj()->set_value(*requested.oom_score_adj);
  for (const Device& device : details.devices)
    linux.add_devices()->set_path(Utf8Repaired(device.container_path));
}

api::ContainerState ToNriState(ContainerState state) {
  switch (state) {
    case ContainerState::kCreating:
      return api::CONTAINER_UNKNOWN;
    case ContainerState::kCreated:
      return api::CONTAINER_CREATED;
    case ContainerState::kRunning:
      return api::CONTAINER_RUNNING;
    case ContainerState::kExited:
      return api::CONTAINER_STOPPED;
  }
  return api::CONTAINER_UNKNOWN;
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

// Adds mounts with OCI's options. A mounted image has the type "image" and its reference as source.
void AddMounts(const std::vector<Mount>& mounts,
               google::protobuf::RepeatedPtrField<api::Mount>& to) {
  for (const Mount& mount : mounts) {
    api::Mount& added = *to.Add();
    added.set_destination(Utf8Repaired(mount.container_path));
    const bool of_image = !mount.image.empty() && mount.host_path.empty();
    added.set_type(of_image ? "image" : "bind");
    added.set_source(Utf8Repaired(of_image ? mount.image : mount.host_path));
    added.add_options(mount.non_recursive ? "bind" : "rbind");
    added.add_options(std::string(PropagationOption(mount)));
    added.add_options(std::string(AccessOption(mount)));
  }
}

// Adds the namespaces that a runtime will give the container: its own ones without a path, those of
// the pod with the path known from the pod, and none if it uses the node's.
void AddNamespaces(const ContainerSecurity& security, const api::PodSandbox& pod,
                   api::LinuxContainer& linux) {
  AddNamespace("network", security.network, pod, linux);
  AddNamespace("pid", security.pid, pod, linux);
  AddNamespace("ipc", security.ipc, pod, linux);
  // The host's name belongs to the network namespace.
  AddNamespace("uts", security.network, pod, linux);
  AddNamespace("mount", NamespaceMode::kContainer, pod, linux);
}

void AddAllButEnvironment(const CreateRequest& create, const ContainerDetails& details,
                          const ImageFacts* image, const api::PodSandbox& pod,
                          api::Container& out) {
  out.set_pod_sandbox_id(Utf8Repaired(create.pod_id.value()));
  out.set_name(Utf8Repaired(create.name));
  CopyStrings(create.labels, *out.mutable_labels());
  CopyStrings(create.annotations, *out.mutable_annotations());
  AddArgs(details, image, *out.mutable_args());
  AddMounts(details.mounts, *out.mutable_mounts());
  out.mutable_hooks();
  AddUser(details.security, out);
  AddImage(details, image, *out.mutable_image());
  AddCdiDevices(create.annotations, details, out);
  api::LinuxContainer& linux = *out.mutable_linux();
  AddLinux(create.resources, create.annotations, details, linux);
  AddNamespaces(details.security, pod, linux);
  AddSeccomp(details.security, linux);
}

// Adds "NAME=value"; a variable that exists gets the new value in its place.
void AddEnvironment(const Environment& environment,
                    google::protobuf::RepeatedPtrField<std::string>& env) {
  // By name, which is a view into an entry of `env`: entries do not move.
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
    // If a name is repeated, the last value counts.
    const int former = place->second;
    places.erase(place);
    env.SwapElements(former, last);
    env.RemoveLast();
    places.emplace(name_of(former), former);
  }
}

void AddEnvironments(const ContainerDetails& details, const ImageFacts* image,
                     api::Container& container) {
  if (image != nullptr) AddEnvironment(image->environment, *container.mutable_env());
  AddEnvironment(details.environment, *container.mutable_env());
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

}  // namespace

api::PodSandbox ToPodSandbox(const Pod& pod) {
  api::PodSandbox out;
  out.set_id(Utf8Repaired(pod.id.value()));
  out.set_name(Utf8Repaired(pod.name));
  out.set_uid(Utf8Repaired(pod.uid.value()));
  out.set_namespace_(Utf8Repaired(pod.namespace_name));
  out.set_runtime_handler(Utf8Repaired(pod.runtime_handler));
  CopyStrings(pod.labels, *out.mutable_labels());
  CopyStrings(pod.annotations, *out.mutable_annotations());
  api::LinuxPodSandbox& linux = *out.mutable_linux();
  linux.set_cgroup_parent(Utf8Repaired(pod.cgroup_parent));
  *linux.mutable_pod_overhead() = ToNriResources(pod.overhead);
  *linux.mutable_pod_resources() = ToNriResources(pod.resources);
  return out;
}

api::PodSandbox ToPodSandbox(const Pod& pod, const SandboxFacts& facts) {
  api::PodSandbox out = ToPodSandbox(pod);
  AddFacts(facts, out);
  return out;
}

void AddFacts(const SandboxFacts& facts, api::PodSandbox& pod) {
  if (facts.pid != 0) pod.set_pid(facts.pid);
  if (!facts.ips.empty()) {
    pod.clear_ips();
    for (const std::string& ip : facts.ips)
      pod.add_ips(Utf8Repaired(ip));
  }
  api::LinuxPodSandbox& linux = *pod.mutable_linux();
  if (!facts.cgroups_path.empty()) linux.set_cgroups_path(Utf8Repaired(facts.cgroups_path));
  if (!facts.namespaces.empty()) CopyNamespaces(facts.namespaces, *linux.mutable_namespaces());
}

api::LinuxResources ToNriResources(const LinuxResources& resources,
                                   const std::optional<int64_t>& memory_swap_limit,
                                   const StringMap& unified) {
  api::LinuxResources out;
  api::LinuxCPU& cpu = *out.mutable_cpu();
  if (resources.cpuset_cpus) cpu.set_cpus(Utf8Repaired(*resources.cpuset_cpus));
  if (resources.cpuset_mems) cpu.set_mems(Utf8Repaired(*resources.cpuset_mems));
  api::LinuxMemory& memory = *out.mutable_memory();
  for (const NriNumber& number : kNriNumbers) {
    const auto requested = number.row().requested;
    if (requested != nullptr && resources.*requested) number.set(out, *(resources.*requested));
  }
  if (memory_swap_limit.value_or(0) != 0) memory.mutable_swap()->set_value(*memory_swap_limit);
  for (const auto& [size, limit] : resources.hugepage_limits) {
    api::HugepageLimit& added = *out.add_hugepage_limits();
    added.set_page_size(Utf8Repaired(size));
    added.set_limit(limit);
  }
  CopyStrings(unified, *out.mutable_unified());
  return out;
}

api::Container ToContainer(const CreateRequest& create, const ContainerDetails& details,
                           const ImageFacts* image, const api::PodSandbox& pod) {
  api::Container container;
  AddAllButEnvironment(create, details, image, pod, container);
  AddEnvironments(details, image, container);
  return container;
}

void EncodeContainer(const CreateRequest& create, const ContainerDetails& details,
                     const ImageFacts* image, const api::PodSandbox& pod, std::string_view id,
                     FieldWriter& container) {
  static const Environment kNone;
  // A block on the stack, so that most of the message's small parts need no allocation: one of the
  // steps that bring a plugin's cost of a creation from 68 to 63 us (nri-call-bench).
  std::array<char, 4096> block;
  google::protobuf::Arena arena(block.data(), block.size());
  auto& message = *google::protobuf::Arena::CreateMessage<api::Container>(&arena);
  AddAllButEnvironment(create, details, image, pod, message);
  message.set_id(std::string(id));
  const auto& of_image = image == nullptr ? kNone : image->environment;
  if (!AppendPlainEnvironment(of_image, details.environment, container)) {
    AddEnvironments(details, image, message);
  }
  const auto size = static_cast<int>(message.ByteSizeLong());
  message.SerializeToArray(container.Extend(static_cast<size_t>(size)), size);
}

api::Container ToContainer(const ContainerFacts& facts) {
  const RuntimeContainer& container = facts.container;
  api::Container out;
  out.set_id(Utf8Repaired(container.id.value()));
  out.set_pod_sandbox_id(Utf8Repaired(container.pod_id.value()));
  out.set_name(Utf8Repaired(container.name));
  CopyStrings(container.labels, *out.mutable_labels());
  CopyStrings(container.annotations, *out.mutable_annotations());
  AddArgs(facts.details, nullptr, *out.mutable_args());
  AddEnvironment(facts.details.environment, *out.mutable_env());
  out.mutable_hooks();
  out.mutable_image()->set_name(Utf8Repaired(facts.image));
  AddCdiDevices(container.annotations, facts.details, out);
  AddLinux(container.resources, container.annotations, facts.details, *out.mutable_linux());
  AddFacts(facts, out);
  return out;
}

void AddFacts(const ContainerFacts& facts, api::Container& container) {
  container.set_state(ToNriState(facts.container.state));
  // The facts of an earlier status stay.
  if (facts.status_missing) return;
  container.set_created_at(facts.created_at);
  container.set_started_at(facts.started_at);
  container.set_finished_at(facts.finished_at);
  container.set_exit_code(facts.exit_code);
  container.set_status_reason(Utf8Repaired(facts.reason));
  container.set_status_message(Utf8Repaired(facts.message));
  if (facts.pid != 0) container.set_pid(facts.pid);
  api::LinuxContainer& linux = *container.mutable_linux();
  if (!facts.cgroups_path.empty()) linux.set_cgroups_path(Utf8Repaired(facts.cgroups_path));
  if (!facts.namespaces.empty()) CopyNamespaces(facts.namespaces, *linux.mutable_namespaces());
  const ContainerDetails& details = facts.details;
  if (!details.mounts.empty()) {
    container.clear_mounts();
    AddMounts(details.mounts, *container.mutable_mounts());
  }
  if (!details.hooks.empty()) SetHooks(details.hooks, *container.mutable_hooks());
  if (!details.resource_limits.empty()) SetLimits(details.resource_limits, container);
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

void AddSeccomp(const ContainerSecurity& security, api::LinuxContainer& linux) {
  if (!security.seccomp) return;
  api::SecurityProfile& profile = *linux.mutable_seccomp_profile();
  profile.set_profile_type(
      static_cast<api::SecurityProfile_ProfileType>(static_cast<int>(security.seccomp->kind)));
  profile.set_localhost_ref(Utf8Repaired(security.seccomp->path));
}

}  // namespace resmgr::nri
