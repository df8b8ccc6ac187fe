// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "test/support/fake_runtime/cri_store.h"
#include "test/support/fake_runtime/cri_store_internal.h"

namespace resmgr::test {

namespace {

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
