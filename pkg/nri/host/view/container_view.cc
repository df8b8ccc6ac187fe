// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/view/container_view.h"

#include <array>
#include <string>
#include <string_view>

#include <google/protobuf/arena.h>

#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"
#include "pkg/nri/host/view/container_parts.h"
#include "pkg/nri/host/view/pod_view.h"
#include "pkg/nri/host/view/resource_view.h"

namespace resmgr::nri {
namespace {

constexpr std::string_view kSha256 = "sha256:";
// The container annotations from which containerd and CRI-O read classes and CDI devices.
constexpr std::string_view kBlockioAnnotation = "io.kubernetes.cri.blockio-class";
constexpr std::string_view kRdtAnnotation = "io.kubernetes.cri.rdt-class";
constexpr std::string_view kCdiAnnotations = "cdi.k8s.io/";

using Strings = google::protobuf::RepeatedPtrField<std::string>;

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

void AddEnvironments(const ContainerDetails& details, const ImageFacts* image,
                     api::Container& container) {
  if (image != nullptr) AddEnvironment(image->environment, *container.mutable_env());
  AddEnvironment(details.environment, *container.mutable_env());
}

}  // namespace

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
  // A block on the stack, so that most of its dozens of small parts need no allocation: one of the
  // steps by which a plugin adds 63 us to a creation in place of 68 (nri-call-bench).
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

}  // namespace resmgr::nri
