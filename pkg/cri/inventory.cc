// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/inventory.h"

#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/field_writer.h"
#include "pkg/cri/messages.h"
#include "pkg/model/identity.h"

namespace resmgr {

namespace {

namespace v1 = ::runtime::v1;
using Json = nlohmann::json;

template <typename Message>
StatusOr<Message> Parse(std::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("the runtime's answer is no {}", Message::descriptor()->name());
  }
  return message;
}

template <typename Map>
StringMap ToStringMap(const Map& map) {
  return StringMap(map.begin(), map.end());
}

ContainerState ToState(v1::ContainerState state) {
  switch (state) {
    case v1::CONTAINER_CREATED:
      return ContainerState::kCreated;
    case v1::CONTAINER_EXITED:
      return ContainerState::kExited;
    default:
      // Unknown counts as running: its CPUs must not be given to others.
      return ContainerState::kRunning;
  }
}

// The verbose info's entry "info" holds JSON text. Null when there is none.
template <typename Map>
Json InfoOf(const Map& info) {
  const auto it = info.find("info");
  if (it == info.end()) return nullptr;
  return Json::parse(it->second, nullptr, /*allow_exceptions=*/false);
}

// A nested value, null where a step is missing.
Json At(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* key : path) {
    if (!at->is_object()) return nullptr;
    const auto it = at->find(key);
    if (it == at->end()) return nullptr;
    at = &*it;
  }
  return *at;
}

std::optional<int64_t> Number(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  return json.get<int64_t>();
}

std::optional<std::string> Text(const Json& json) {
  if (!json.is_string()) return std::nullopt;
  return json.get<std::string>();
}

LinuxResources FromMessage(const v1::LinuxContainerResources& message) {
  LinuxResources resources;
  const auto set = [](int64_t value, std::optional<int64_t>& target) {
    if (value != 0) target = value;
  };
  set(message.cpu_period(), resources.cpu_period);
  set(message.cpu_quota(), resources.cpu_quota);
  set(message.cpu_shares(), resources.cpu_shares);
  set(message.memory_limit_in_bytes(), resources.memory_limit);
  set(message.oom_score_adj(), resources.oom_score_adj);
  if (!message.cpuset_cpus().empty()) resources.cpuset_cpus = message.cpuset_cpus();
  if (!message.cpuset_mems().empty()) resources.cpuset_mems = message.cpuset_mems();
  for (const auto& limit : message.hugepage_limits()) {
    resources.hugepage_limits[limit.page_size()] = limit.limit();
  }
  return resources;
}

LinuxResources FromSpec(const Json& info) {
  const Json spec = At(info, {"runtimeSpec", "linux", "resources"});
  LinuxResources resources;
  resources.cpu_period = Number(At(spec, {"cpu", "period"}));
  resources.cpu_quota = Number(At(spec, {"cpu", "quota"}));
  resources.cpu_shares = Number(At(spec, {"cpu", "shares"}));
  resources.memory_limit = Number(At(spec, {"memory", "limit"}));
  resources.cpuset_cpus = Text(At(spec, {"cpu", "cpus"}));
  resources.cpuset_mems = Text(At(spec, {"cpu", "mems"}));
  resources.oom_score_adj = Number(At(info, {"runtimeSpec", "process", "oomScoreAdj"}));
  for (const Json& limit : At(spec, {"hugepageLimits"})) {
    const auto page_size = Text(At(limit, {"pageSize"}));
    const auto bytes = Number(At(limit, {"limit"}));
    if (page_size && bytes) resources.hugepage_limits[*page_size] = static_cast<uint64_t>(*bytes);
  }
  return resources;
}

// LinuxContainerResources as both runtimes write it into JSON: the names of the CRI, and nothing
// for 0.
LinuxResources FromCriJson(const Json& json) {
  LinuxResources resources;
  resources.cpu_period = Number(At(json, {"cpu_period"}));
  resources.cpu_quota = Number(At(json, {"cpu_quota"}));
  resources.cpu_shares = Number(At(json, {"cpu_shares"}));
  resources.memory_limit = Number(At(json, {"memory_limit_in_bytes"}));
  return resources;
}

// containerd: in info.config.linux. CRI-O: as text in an annotation of info.runtimeSpec.
LinuxResources PodResourcesFrom(const Json& info, const char* containerd, const char* crio) {
  const Json value = At(info, {"config", "linux", containerd});
  if (value.is_object()) return FromCriJson(value);
  const auto text = Text(At(info, {"runtimeSpec", "annotations", crio}));
  if (!text) return {};
  return FromCriJson(Json::parse(*text, nullptr, /*allow_exceptions=*/false));
}

std::string EncodeVerboseRequest(std::string_view id) {
  std::string bytes;
  {
    FieldWriter request(bytes);
    request.Bytes(1, id);
    request.Number(2, 1);
  }
  return bytes;
}

}  // namespace

StatusOr<std::vector<Pod>> ReadPodList(std::string_view reply) {
  RESMGR_ASSIGN_OR_RETURN(const auto list, Parse<v1::ListPodSandboxResponse>(reply));
  std::vector<Pod> pods;
  for (const v1::PodSandbox& item : list.items()) {
    Pod pod;
    pod.id = PodSandboxId(item.id());
    pod.uid = PodUid(item.metadata().uid());
    pod.name = item.metadata().name();
    pod.namespace_name = item.metadata().namespace_();
    pod.runtime_handler = item.runtime_handler();
    pod.labels = ToStringMap(item.labels());
    pod.annotations = ToStringMap(item.annotations());
    pods.push_back(std::move(pod));
  }
  return pods;
}

StatusOr<std::vector<RuntimeContainer>> ReadContainerList(std::string_view reply) {
  RESMGR_ASSIGN_OR_RETURN(const auto list, Parse<v1::ListContainersResponse>(reply));
  std::vector<RuntimeContainer> containers;
  for (const v1::Container& item : list.containers()) {
    RuntimeContainer container;
    container.id = ContainerId(item.id());
    container.pod_id = PodSandboxId(item.pod_sandbox_id());
    container.name = item.metadata().name();
    container.attempt = item.metadata().attempt();
    container.state = ToState(item.state());
    container.labels = ToStringMap(item.labels());
    container.annotations = ToStringMap(item.annotations());
    if (container.name.empty()) container.name = ContainerNameOf(container.labels);
    containers.push_back(std::move(container));
  }
  return containers;
}

Status AddPodStatus(std::string_view reply, Pod& pod) {
  RESMGR_ASSIGN_OR_RETURN(const auto response, Parse<v1::PodSandboxStatusResponse>(reply));
  const Json info = InfoOf(response.info());
  auto parent = Text(At(info, {"config", "linux", "cgroup_parent"}));
  if (!parent) {
    parent = Text(At(info, {"runtimeSpec", "annotations", "io.kubernetes.cri-o.CgroupParent"}));
  }
  if (parent) pod.cgroup_parent = *std::move(parent);
  pod.overhead = PodResourcesFrom(info, "overhead", "io.kubernetes.cri-o.PodLinuxOverhead");
  pod.resources = PodResourcesFrom(info, "resources", "io.kubernetes.cri-o.PodLinuxResources");
  CompleteIdentity(pod);
  SetQos(pod);
  return OkStatus();
}

Status AddContainerStatus(std::string_view reply, RuntimeContainer& container) {
  RESMGR_ASSIGN_OR_RETURN(const auto response, Parse<v1::ContainerStatusResponse>(reply));
  container.resources = response.status().resources().has_linux()
                            ? FromMessage(response.status().resources().linux())
                            : FromSpec(InfoOf(response.info()));
  container.state = ToState(response.status().state());
  // Nanoseconds since 1970; 0 before the start.
  if (const int64_t started = response.status().started_at(); started > 0) {
    using WallClock = std::chrono::system_clock;
    container.started_at = WallClock::time_point(
        std::chrono::duration_cast<WallClock::duration>(std::chrono::nanoseconds(started)));
  }
  return OkStatus();
}

std::string EncodeVerbosePodStatusRequest(const PodSandboxId& id) {
  return EncodeVerboseRequest(id.value());
}

std::string EncodeVerboseContainerStatusRequest(const ContainerId& id) {
  return EncodeVerboseRequest(id.value());
}

}  // namespace resmgr
