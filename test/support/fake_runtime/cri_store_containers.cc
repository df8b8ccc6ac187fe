// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "test/support/fake_runtime/cri_store.h"
#include "test/support/fake_runtime/cri_store_internal.h"

namespace resmgr::test {
namespace {

std::string_view Name(cri::ContainerState state) {
  switch (state) {
    case cri::CONTAINER_CREATED:
      return "CONTAINER_CREATED";
    case cri::CONTAINER_RUNNING:
      return "CONTAINER_RUNNING";
    case cri::CONTAINER_EXITED:
      return "CONTAINER_EXITED";
    default:
      return "CONTAINER_UNKNOWN";
  }
}

// Shaped like containerd's: runtimes without ContainerStatus.resources show the values in force
// there.
std::string ContainerInfo(const CriStore::Container& container, const std::string& cgroup_parent) {
  const cri::LinuxContainerResources& resources = container.resources;
  nlohmann::json cpu = nlohmann::json::object();
  if (resources.cpu_shares() != 0) cpu["shares"] = resources.cpu_shares();
  if (resources.cpu_quota() != 0) cpu["quota"] = resources.cpu_quota();
  if (resources.cpu_period() != 0) cpu["period"] = resources.cpu_period();
  if (!resources.cpuset_cpus().empty()) cpu["cpus"] = resources.cpuset_cpus();
  if (!resources.cpuset_mems().empty()) cpu["mems"] = resources.cpuset_mems();
  const nlohmann::json limits = {{"cpu", cpu},
                                 {"memory", {{"limit", resources.memory_limit_in_bytes()}}}};
  const nlohmann::json spec = {
      {"process", {{"oomScoreAdj", resources.oom_score_adj()}}},
      {"linux", {{"resources", limits}, {"cgroupsPath", cgroup_parent + "/" + container.id}}}};
  const nlohmann::json info = {{"sandboxID", container.sandbox_id},
                               {"pid", container.state == cri::CONTAINER_RUNNING ? 2 : 0},
                               {"removing", false},
                               {"config",
                                {{"metadata",
                                  {{"name", container.config.metadata().name()},
                                   {"attempt", container.config.metadata().attempt()}}}}},
                               {"runtimeSpec", spec}};
  return info.dump();
}

void Describe(const CriStore::Container& container, cri::Container* item) {
  item->set_id(container.id);
  item->set_pod_sandbox_id(container.sandbox_id);
  *item->mutable_metadata() = container.config.metadata();
  *item->mutable_image() = container.config.image();
  item->set_image_ref(container.config.image().image());
  item->set_state(container.state);
  item->set_created_at(container.created_at);
  *item->mutable_labels() = container.config.labels();
  *item->mutable_annotations() = container.config.annotations();
}

bool Matches(const CriStore::Container& container, const cri::ContainerFilter& filter) {
  if (!filter.id().empty() && filter.id() != container.id) return false;
  if (!filter.pod_sandbox_id().empty() && filter.pod_sandbox_id() != container.sandbox_id) {
    return false;
  }
  if (filter.has_state() && filter.state().state() != container.state) return false;
  return MatchesSelector(container.config.labels(), filter.label_selector());
}

// Updates as containerd does: fields that are zero in the request stay unchanged.
void Merge(const cri::LinuxContainerResources& from, cri::LinuxContainerResources* into) {
  if (from.hugepage_limits_size() > 0) into->clear_hugepage_limits();
  into->MergeFrom(from);
}

constexpr uint64_t kCpuNanoseconds = 1'000'000'000;
constexpr uint64_t kMemoryBytes = 1 << 20;

void Describe(const CriStore::Container& container, cri::ContainerStats* stats) {
  auto* attributes = stats->mutable_attributes();
  attributes->set_id(container.id);
  *attributes->mutable_metadata() = container.config.metadata();
  *attributes->mutable_labels() = container.config.labels();
  *attributes->mutable_annotations() = container.config.annotations();
  const int64_t now = WallClockNanoseconds();
  stats->mutable_cpu()->set_timestamp(now);
  stats->mutable_cpu()->mutable_usage_core_nano_seconds()->set_value(kCpuNanoseconds);
  stats->mutable_memory()->set_timestamp(now);
  stats->mutable_memory()->mutable_working_set_bytes()->set_value(kMemoryBytes);
}

void Describe(const CriStore::Sandbox& sandbox, cri::PodSandboxStats* stats) {
  auto* attributes = stats->mutable_attributes();
  attributes->set_id(sandbox.id);
  *attributes->mutable_metadata() = sandbox.config.metadata();
  *attributes->mutable_labels() = sandbox.config.labels();
  *attributes->mutable_annotations() = sandbox.config.annotations();
  auto* cpu = stats->mutable_linux()->mutable_cpu();
  cpu->set_timestamp(WallClockNanoseconds());
  cpu->mutable_usage_core_nano_seconds()->set_value(kCpuNanoseconds);
}

void Describe(const CriStore::Sandbox& sandbox, cri::PodSandboxMetrics* metrics) {
  metrics->set_pod_sandbox_id(sandbox.id);
  auto* metric = metrics->add_metrics();
  metric->set_name("container_cpu_usage_seconds_total");
  metric->mutable_value()->set_value(1);
}

bool Matches(const CriStore::Container& container, const cri::ContainerStatsFilter& filter) {
  if (!filter.id().empty() && filter.id() != container.id) return false;
  if (!filter.pod_sandbox_id().empty() && filter.pod_sandbox_id() != container.sandbox_id) {
    return false;
  }
  return MatchesSelector(container.config.labels(), filter.label_selector());
}

bool Matches(const CriStore::Sandbox& sandbox, const cri::PodSandboxStatsFilter& filter) {
  if (!filter.id().empty() && filter.id() != sandbox.id) return false;
  return MatchesSelector(sandbox.config.labels(), filter.label_selector());
}

}  // namespace

void CriStore::Stop(Container* container) {
  if (container->state == cri::CONTAINER_EXITED) return;
  container->state = cri::CONTAINER_EXITED;
  container->finished_at = WallClockNanoseconds();
  Emit(*container, cri::CONTAINER_STOPPED_EVENT);
}

void CriStore::Remove(const std::string& container_id) {
  const auto found = containers_.find(container_id);
  if (found == containers_.end()) return;
  Stop(&found->second);
  Emit(found->second, cri::CONTAINER_DELETED_EVENT);
  containers_.erase(found);
}

void CriStore::Exit(const std::string& container_id) {
  const auto found = containers_.find(container_id);
  if (found != containers_.end()) Stop(&found->second);
}

grpc::Status CriStore::CreateContainer(const cri::CreateContainerRequest& request,
                                       cri::CreateContainerResponse* response) {
  const auto sandbox = FindById(sandboxes_, request.pod_sandbox_id());
  if (sandbox == sandboxes_.end()) return NoSuch("sandbox", request.pod_sandbox_id());
  if (!request.config().has_metadata()) return Unknown("container config must include metadata");
  const cri::ContainerMetadata& metadata = request.config().metadata();
  for (const auto& [id, other] : containers_) {
    if (other.sandbox_id == sandbox->first && other.config.metadata().name() == metadata.name() &&
        other.config.metadata().attempt() == metadata.attempt()) {
      return Unknown(
          fmt::format("failed to reserve container name \"{}_{}\": it is reserved for \"{}\"",
                      metadata.name(), metadata.attempt(), id));
    }
  }
  Container container;
  container.id = NewId("c0");
  container.sandbox_id = sandbox->first;
  container.config = request.config();
  container.resources = request.config().linux().resources();
  container.created_at = WallClockNanoseconds();
  response->set_container_id(container.id);
  Emit(container, cri::CONTAINER_CREATED_EVENT);
  containers_.emplace(container.id, std::move(container));
  return grpc::Status::OK;
}

grpc::Status CriStore::StartContainer(const cri::StartContainerRequest& request,
                                      cri::StartContainerResponse* /*response*/) {
  const auto found = FindById(containers_, request.container_id());
  if (found == containers_.end()) return NoSuch("container", request.container_id());
  Container& container = found->second;
  if (container.state != cri::CONTAINER_CREATED) {
    return Unknown(fmt::format("container is in {} state", Name(container.state)));
  }
  if (grpc::Status checked = CheckCpus(container.resources); !checked.ok()) return checked;
  container.state = cri::CONTAINER_RUNNING;
  container.started_at = WallClockNanoseconds();
  Emit(container, cri::CONTAINER_STARTED_EVENT);
  return grpc::Status::OK;
}

grpc::Status CriStore::StopContainer(const cri::StopContainerRequest& request,
                                     cri::StopContainerResponse* /*response*/) {
  const auto found = FindById(containers_, request.container_id());
  if (found != containers_.end()) Stop(&found->second);
  return grpc::Status::OK;
}

grpc::Status CriStore::RemoveContainer(const cri::RemoveContainerRequest& request,
                                       cri::RemoveContainerResponse* /*response*/) {
  const auto found = FindById(containers_, request.container_id());
  if (found != containers_.end()) Remove(std::string(found->first));
  return grpc::Status::OK;
}

void CriStore::AddImageId(const Container& container, cri::Container* item) const {
  item->set_image_id(FindImage(container.config.image().image()));
}

grpc::Status CriStore::ListContainers(const cri::ListContainersRequest& request,
                                      cri::ListContainersResponse* response) {
  for (const auto& [id, container] : containers_) {
    if (!Matches(container, request.filter())) continue;
    cri::Container* const item = response->add_containers();
    Describe(container, item);
    AddImageId(container, item);
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::StreamContainers(const cri::StreamContainersRequest& request,
                                        std::vector<cri::StreamContainersResponse>* replies) {
  replies->emplace_back();
  for (const auto& [id, container] : containers_) {
    if (!Matches(container, request.filter())) continue;
    if (replies->back().containers_size() == kStreamChunk) replies->emplace_back();
    cri::Container* const item = replies->back().add_containers();
    Describe(container, item);
    AddImageId(container, item);
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::ContainerStatus(const cri::ContainerStatusRequest& request,
                                       cri::ContainerStatusResponse* response) {
  const auto found = FindById(containers_, request.container_id());
  if (found == containers_.end()) return NoSuch("container", request.container_id());
  const Container& container = found->second;
  auto* status = response->mutable_status();
  status->set_id(container.id);
  *status->mutable_metadata() = container.config.metadata();
  status->set_state(container.state);
  status->set_created_at(container.created_at);
  status->set_started_at(container.started_at);
  status->set_finished_at(container.finished_at);
  *status->mutable_image() = container.config.image();
  status->set_image_ref(container.config.image().image());
  status->set_image_id(FindImage(container.config.image().image()));
  *status->mutable_labels() = container.config.labels();
  *status->mutable_annotations() = container.config.annotations();
  *status->mutable_mounts() = container.config.mounts();
  status->set_log_path(container.config.log_path());
  if (container.state == cri::CONTAINER_EXITED) status->set_reason("Completed");
  if (options_.status_resources) {
    *status->mutable_resources()->mutable_linux() = container.resources;
  }
  if (request.verbose()) {
    const auto sandbox = sandboxes_.find(container.sandbox_id);
    const std::string parent =
        sandbox == sandboxes_.end() ? "" : sandbox->second.config.linux().cgroup_parent();
    (*response->mutable_info())["info"] = ContainerInfo(container, parent);
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::UpdateContainerResources(
    const cri::UpdateContainerResourcesRequest& request,
    cri::UpdateContainerResourcesResponse* /*response*/) {
  const auto found = FindById(containers_, request.container_id());
  if (found == containers_.end()) return NoSuch("container", request.container_id());
  Container& container = found->second;
  if (container.state == cri::CONTAINER_EXITED) {
    return Unknown(
        fmt::format("failed to update resources: container is in {} state", Name(container.state)));
  }
  if (grpc::Status checked = CheckCpus(request.linux()); !checked.ok()) return checked;
  Merge(request.linux(), &container.resources);
  return grpc::Status::OK;
}

grpc::Status CriStore::ReopenContainerLog(const cri::ReopenContainerLogRequest& request,
                                          cri::ReopenContainerLogResponse* /*response*/) {
  if (FindById(containers_, request.container_id()) == containers_.end()) {
    return NoSuch("container", request.container_id());
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::ContainerStats(const cri::ContainerStatsRequest& request,
                                      cri::ContainerStatsResponse* response) {
  const auto found = FindById(containers_, request.container_id());
  if (found == containers_.end()) return NoSuch("container", request.container_id());
  Describe(found->second, response->mutable_stats());
  return grpc::Status::OK;
}

grpc::Status CriStore::ListContainerStats(const cri::ListContainerStatsRequest& request,
                                          cri::ListContainerStatsResponse* response) {
  for (const auto& [id, container] : containers_) {
    if (Matches(container, request.filter())) Describe(container, response->add_stats());
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::PodSandboxStats(const cri::PodSandboxStatsRequest& request,
                                       cri::PodSandboxStatsResponse* response) {
  const auto found = FindById(sandboxes_, request.pod_sandbox_id());
  if (found == sandboxes_.end()) return NoSuch("sandbox", request.pod_sandbox_id());
  Describe(found->second, response->mutable_stats());
  return grpc::Status::OK;
}

grpc::Status CriStore::ListPodSandboxStats(const cri::ListPodSandboxStatsRequest& request,
                                           cri::ListPodSandboxStatsResponse* response) {
  for (const auto& [id, sandbox] : sandboxes_) {
    if (Matches(sandbox, request.filter())) Describe(sandbox, response->add_stats());
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::ListMetricDescriptors(const cri::ListMetricDescriptorsRequest& /*request*/,
                                             cri::ListMetricDescriptorsResponse* response) {
  auto* descriptor = response->add_descriptors();
  descriptor->set_name("container_cpu_usage_seconds_total");
  descriptor->set_help("CPU time used");
  return grpc::Status::OK;
}

grpc::Status CriStore::ListPodSandboxMetrics(const cri::ListPodSandboxMetricsRequest& /*request*/,
                                             cri::ListPodSandboxMetricsResponse* response) {
  for (const auto& [id, sandbox] : sandboxes_)
    Describe(sandbox, response->add_pod_metrics());
  return grpc::Status::OK;
}

grpc::Status CriStore::StreamContainerStats(
    const cri::StreamContainerStatsRequest& request,
    std::vector<cri::StreamContainerStatsResponse>* replies) {
  replies->emplace_back();
  for (const auto& [id, container] : containers_) {
    if (!Matches(container, request.filter())) continue;
    if (replies->back().container_stats_size() == kStreamChunk) replies->emplace_back();
    Describe(container, replies->back().add_container_stats());
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::StreamPodSandboxStats(
    const cri::StreamPodSandboxStatsRequest& request,
    std::vector<cri::StreamPodSandboxStatsResponse>* replies) {
  replies->emplace_back();
  for (const auto& [id, sandbox] : sandboxes_) {
    if (!Matches(sandbox, request.filter())) continue;
    if (replies->back().pod_sandbox_stats_size() == kStreamChunk) replies->emplace_back();
    Describe(sandbox, replies->back().add_pod_sandbox_stats());
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::StreamPodSandboxMetrics(
    const cri::StreamPodSandboxMetricsRequest& /*request*/,
    std::vector<cri::StreamPodSandboxMetricsResponse>* replies) {
  replies->emplace_back();
  for (const auto& [id, sandbox] : sandboxes_) {
    if (replies->back().pod_sandbox_metrics_size() == kStreamChunk) replies->emplace_back();
    Describe(sandbox, replies->back().add_pod_sandbox_metrics());
  }
  return grpc::Status::OK;
}

}  // namespace resmgr::test
