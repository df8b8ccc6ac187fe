// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/convert.h"

#include <chrono>

#include "pkg/base/parse.h"
#include "pkg/model/resources_annotation.h"
#include "pkg/model/unified_files.h"

namespace resmgr::nri {
namespace {

// The annotation in which kubelets count a container's attempts.
constexpr std::string_view kRestarts = "io.kubernetes.container.restartCount";

StringMap ToStringMap(const google::protobuf::Map<std::string, std::string>& map) {
  return {map.begin(), map.end()};
}

std::optional<std::string> NotEmpty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// NRI's mark for the removal of a key.
std::string Removed(std::string_view key) {
  return "-" + std::string(key);
}

uint32_t AttemptOf(const api::Container& container) {
  const auto found = container.annotations().find(std::string(kRestarts));
  if (found == container.annotations().end()) return 0;
  return static_cast<uint32_t>(ParseUint(found->second).value_or(0));
}

LinuxResources ResourcesOf(const api::Container& container) {
  LinuxResources resources = ToResources(container.linux().resources());
  const api::LinuxContainer& linux = container.linux();
  if (linux.has_oom_score_adj()) resources.oom_score_adj = linux.oom_score_adj().value();
  return resources;
}

ContainerState ToState(api::ContainerState state) {
  switch (state) {
    case api::CONTAINER_RUNNING:
    case api::CONTAINER_PAUSED:
      return ContainerState::kRunning;
    case api::CONTAINER_STOPPED:
      return ContainerState::kExited;
    default:
      return ContainerState::kCreated;
  }
}

void AddMount(const Mount& mount, api::ContainerAdjustment& out) {
  api::Mount& added = *out.add_mounts();
  added.set_destination(mount.container_path);
  added.set_source(mount.host_path);
  added.set_type("bind");
  added.add_options("rbind");
  added.add_options(std::string(PropagationOption(mount)));
  added.add_options(std::string(AccessOption(mount)));
}

void AddWideResources(const WideAdjustment& wide, api::LinuxResources& resources) {
  for (const NriNumber& number : kNriNumbers) {
    if (number.row().decided()) continue;
    if (const auto& value = wide.*number.row().changed) number.set(resources, *value);
  }
  for (const auto& [size, limit] : wide.hugepage_limits) {
    if (!limit) continue;
    api::HugepageLimit& added = *resources.add_hugepage_limits();
    added.set_page_size(size);
    added.set_limit(*limit);
  }
  // A removed file has no value to write.
  for (const auto& [file, value] : wide.unified)
    if (value) (*resources.mutable_unified())[file] = *value;
  if (wide.blockio_class) resources.mutable_blockio_class()->set_value(*wide.blockio_class);
}

void AddRdtClass(const std::string& name, ApiVersion host, api::LinuxContainerAdjustment& out) {
  if (host >= kNamesRdtGroups) {
    out.mutable_rdt()->mutable_clos_id()->set_value(name);
  } else {
    out.mutable_resources()->mutable_rdt_class()->set_value(name);
  }
}

void AddKeyed(const WideAdjustment& wide, api::ContainerAdjustment& out) {
  for (const auto& [name, value] : wide.environment) {
    api::KeyValue& added = *out.add_env();
    added.set_key(value ? name : Removed(name));
    if (value) added.set_value(*value);
  }
  for (const auto& [path, mount] : wide.mounts) {
    if (mount) {
      AddMount(*mount, out);
    } else {
      out.add_mounts()->set_destination(Removed(path));
    }
  }
  for (const auto& [key, value] : wide.annotations)
    (*out.mutable_annotations())[value ? key : Removed(key)] = value.value_or("");
  for (const auto& [type, limit] : wide.resource_limits) {
    if (!limit) continue;
    api::POSIXRlimit& added = *out.add_rlimits();
    added.set_type(type);
    added.set_hard(limit->hard);
    added.set_soft(limit->soft);
  }
}

// The model's enumerators have the same numbers as NRI's.
void AddProcessSettings(const WideAdjustment& wide, api::LinuxContainerAdjustment& out) {
  if (wide.scheduler) {
    api::LinuxScheduler& scheduler = *out.mutable_scheduler();
    scheduler.set_policy(static_cast<api::LinuxSchedulerPolicy>(wide.scheduler->policy));
    scheduler.set_nice(wide.scheduler->nice);
    scheduler.set_priority(wide.scheduler->priority);
    for (const SchedulerSettings::Flag flag : wide.scheduler->flags)
      scheduler.add_flags(static_cast<api::LinuxSchedulerFlag>(flag));
    scheduler.set_runtime(wide.scheduler->runtime_ns);
    scheduler.set_deadline(wide.scheduler->deadline_ns);
    scheduler.set_period(wide.scheduler->period_ns);
  }
  if (wide.io_priority) {
    api::LinuxIOPriority& priority = *out.mutable_io_priority();
    priority.set_class_(static_cast<api::IOPrioClass>(wide.io_priority->io_class));
    priority.set_priority(wide.io_priority->priority);
  }
  if (wide.memory_policy) {
    api::LinuxMemoryPolicy& policy = *out.mutable_memory_policy();
    policy.set_mode(static_cast<api::MpolMode>(wide.memory_policy->mode));
    policy.set_nodes(wide.memory_policy->nodes);
    for (const MemoryPolicySettings::Flag flag : wide.memory_policy->flags)
      policy.add_flags(static_cast<api::MpolFlag>(flag));
  }
}

}  // namespace

std::vector<std::string> FilesOf(const api::LinuxResources& resources) {
  std::vector<std::string> files;
  for (const auto& [file, value] : resources.unified())
    if (IsPlacementFile(file) || FieldOfFile(file, value)) files.push_back(file);
  return files;
}

LinuxResources ToResources(const api::LinuxResources& resources) {
  LinuxResources out;
  for (const NriNumber& number : kNriNumbers) {
    const auto value = number.get(resources);
    const auto requested = number.row().requested;
    if (requested != nullptr && value.value_or(0) != 0) out.*requested = value;
  }
  out.cpuset_cpus = NotEmpty(resources.cpu().cpus());
  out.cpuset_mems = NotEmpty(resources.cpu().mems());
  for (const api::HugepageLimit& limit : resources.hugepage_limits())
    out.hugepage_limits[limit.page_size()] = limit.limit();
  return out;
}

Pod ToPod(const api::PodSandbox& pod) {
  Pod out;
  out.id = PodSandboxId(pod.id());
  out.uid = PodUid(pod.uid());
  out.name = pod.name();
  out.namespace_name = pod.namespace_();
  out.cgroup_parent = pod.linux().cgroup_parent();
  out.runtime_handler = pod.runtime_handler();
  out.labels = ToStringMap(pod.labels());
  out.annotations = ToStringMap(pod.annotations());
  out.overhead = ToResources(pod.linux().pod_overhead());
  out.resources = ToResources(pod.linux().pod_resources());
  CompleteIdentity(out);
  SetQos(out.cgroup_parent, out);
  return out;
}

RuntimeContainer ToRuntimeContainer(const api::Container& container) {
  RuntimeContainer out;
  out.id = ContainerId(container.id());
  out.pod_id = PodSandboxId(container.pod_sandbox_id());
  out.name = container.name();
  out.attempt = AttemptOf(container);
  out.state = ToState(container.state());
  out.labels = ToStringMap(container.labels());
  out.annotations = ToStringMap(container.annotations());
  out.resources = ResourcesOf(container);
  if (out.name.empty()) out.name = ContainerNameOf(out.labels);
  if (container.started_at() > 0) {
    using WallClock = std::chrono::system_clock;
    out.started_at = WallClock::time_point(std::chrono::duration_cast<WallClock::duration>(
        std::chrono::nanoseconds(container.started_at())));
  }
  return out;
}

CreateRequest ToCreateRequest(const api::Container& container) {
  CreateRequest out;
  out.pod_id = PodSandboxId(container.pod_sandbox_id());
  out.name = container.name();
  out.attempt = AttemptOf(container);
  out.labels = ToStringMap(container.labels());
  out.annotations = ToStringMap(container.annotations());
  out.has_resources = true;  // even if none are set: the runtime merges the answer's values
  out.resources = ResourcesOf(container);
  if (out.name.empty()) out.name = ContainerNameOf(out.labels);
  return out;
}

std::string_view PropagationOption(const Mount& mount) {
  constexpr std::string_view kOptions[] = {"rprivate", "rslave", "rshared"};
  return kOptions[static_cast<size_t>(mount.propagation)];
}

std::string_view AccessOption(const Mount& mount) {
  if (mount.recursive_read_only) return "rro";
  return mount.read_only ? "ro" : "rw";
}

void AddHook(const OciHook& hook, api::Hooks& hooks) {
  // In the order of OciHook::Point.
  constexpr decltype(&api::Hooks::add_prestart) kAdd[] = {
      &api::Hooks::add_prestart,         &api::Hooks::add_create_runtime,
      &api::Hooks::add_create_container, &api::Hooks::add_start_container,
      &api::Hooks::add_poststart,        &api::Hooks::add_poststop};
  api::Hook& added = *(hooks.*kAdd[static_cast<size_t>(hook.point)])();
  added.set_path(hook.path);
  added.mutable_args()->Add(hook.args.begin(), hook.args.end());
  added.mutable_env()->Add(hook.env.begin(), hook.env.end());
  if (hook.timeout_seconds) added.mutable_timeout()->set_value(*hook.timeout_seconds);
}

void AddTo(const ResourceValues& values, api::LinuxResources& resources) {
  if (values.empty()) return;
  api::LinuxCPU& cpu = *resources.mutable_cpu();
  if (values.cpus) cpu.set_cpus(values.cpus->ToString());
  if (values.mems) cpu.set_mems(values.mems->ToString());
  for (const NriNumber& number : kNriNumbers)
    if (const auto& value = values.*number.row().value) number.set(resources, *value);
}

bool NriHas(Operation operation, Field field) {
  switch (field) {
    case Field::kCpusetCpus:
    case Field::kCpusetMems:
    case Field::kCpuShares:
    case Field::kCpuQuota:
    case Field::kCpuPeriod:
      return operation == Operation::kCreateContainer ||
             operation == Operation::kUpdateContainerResources;
    case Field::kLabels:
    case Field::kDevices:
    case Field::kCgroupParent:
    case Field::kSeccompProfile:
      return false;
    default:
      return operation == Operation::kCreateContainer;
  }
}

void AddTo(const Adjustment& adjustment, ApiVersion host, api::ContainerAdjustment& out) {
  if (!adjustment.values.empty())
    AddTo(adjustment.values, *out.mutable_linux()->mutable_resources());
  if (adjustment.wide() == nullptr) return;
  const WideAdjustment& wide = *adjustment.wide();
  api::LinuxResources resources;
  AddWideResources(wide, resources);
  if (resources.ByteSizeLong() > 0) out.mutable_linux()->mutable_resources()->MergeFrom(resources);
  if (wide.rdt_class) AddRdtClass(*wide.rdt_class, host, *out.mutable_linux());
  if (wide.oom_score_adj) {
    out.mutable_linux()->mutable_oom_score_adj()->set_value(*wide.oom_score_adj);
  }
  if (wide.scheduler || wide.io_priority || wide.memory_policy)
    AddProcessSettings(wide, *out.mutable_linux());
  AddKeyed(wide, out);
  if (wide.args) {
    // An empty first argument tells the runtime that replacing the arguments of others is intended.
    out.add_args("");
    out.mutable_args()->Add(wide.args->begin(), wide.args->end());
  }
  for (const std::string& name : wide.cdi_devices)
    out.add_cdi_devices()->set_name(name);
  for (const OciHook& hook : wide.hooks)
    AddHook(hook, *out.mutable_hooks());
}

}  // namespace resmgr::nri
