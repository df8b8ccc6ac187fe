// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/usage_metrics.h"

#include <mutex>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "pkg/metrics/collect.h"

namespace resmgr {
namespace {

using UsageLabels = std::vector<prometheus::ClientMetric::Label>;

// Families that are made anew with each sample, so that series of what has gone go, too.
class UsageGauges {
 public:
  UsageGauges(const char* name, const char* help)
      : family_(MakeFamily(name, help, prometheus::MetricType::Gauge)) {}

  template <typename Number>
  void Add(const UsageLabels& labels, std::optional<Number> value) {
    if (!value) return;
    prometheus::ClientMetric& metric = family_.metric.emplace_back();
    metric.label = labels;
    metric.gauge.value = static_cast<double>(*value);
  }
  void MoveTo(std::vector<prometheus::MetricFamily>& families) {
    families.push_back(std::move(family_));
  }

 private:
  prometheus::MetricFamily family_;
};

void AddPools(const std::vector<UsageMetrics::Pool>& pools,
              std::vector<prometheus::MetricFamily>& families) {
  UsageGauges used("cri_resmgr_pool_cpu_used", "CPUs that the containers of each pool use");
  UsageGauges pressure("cri_resmgr_pool_cpu_pressure_ratio",
                       "The highest CPU pressure (some, 60 s) of a container of each pool");
  UsageGauges memory("cri_resmgr_pool_memory_used_bytes",
                     "Memory that the containers of each pool have on each memory node");
  UsageGauges remote("cri_resmgr_pool_memory_remote_bytes",
                     "Memory of the containers of each pool on other nodes than decided");
  for (const UsageMetrics::Pool& pool : pools) {
    const UsageLabels labels = {{"pool", pool.name}};
    used.Add(labels, std::optional(pool.cpu_used));
    pressure.Add(labels, pool.cpu_pressure);
    for (const auto& [node, bytes] : pool.memory_by_node)
      memory.Add({{"node", std::to_string(node)}, {"pool", pool.name}}, std::optional(bytes));
    remote.Add(labels, std::optional(pool.remote_bytes));
  }
  for (UsageGauges* const gauges : {&used, &pressure, &memory, &remote})
    gauges->MoveTo(families);
}

void AddNodes(const std::vector<UsageMetrics::Node>& nodes,
              std::vector<prometheus::MetricFamily>& families) {
  UsageGauges used("cri_resmgr_numa_cpu_used", "CPUs of each NUMA node that are busy");
  UsageGauges memory("cri_resmgr_numa_memory_used_bytes",
                     "Memory of each NUMA node that is not free");
  UsageGauges containers("cri_resmgr_numa_memory_container_bytes",
                         "Memory of each NUMA node that containers have");
  for (const UsageMetrics::Node& node : nodes) {
    const UsageLabels labels = {{"node", std::to_string(node.id)}};
    used.Add(labels, std::optional(node.cpu_used));
    memory.Add(labels, node.memory_bytes);
    containers.Add(labels, std::optional(node.container_bytes));
  }
  for (UsageGauges* const gauges : {&used, &memory, &containers})
    gauges->MoveTo(families);
}

// Returns how many series were left out.
size_t AddContainers(const std::vector<UsageMetrics::Container>& containers,
                     std::vector<prometheus::MetricFamily>& families) {
  UsageGauges used("cri_resmgr_container_cpu_used", "CPUs that each container uses");
  UsageGauges throttled("cri_resmgr_container_cpu_throttled_ratio",
                        "Periods in which a quota throttled each container");
  UsageGauges pressure("cri_resmgr_container_cpu_pressure_ratio",
                       "CPU pressure (some, 60 s) of each container");
  UsageGauges memory("cri_resmgr_container_memory_used_bytes", "Memory that each container has");
  UsageGauges remote("cri_resmgr_container_memory_remote_bytes",
                     "Memory of each container on other nodes than decided");
  constexpr size_t kSeries = 5;
  size_t left_out = 0;
  size_t added = 0;
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> names;
  for (const UsageMetrics::Container& container : containers) {
    // Two of one name would be one series twice, and Prometheus refuses the whole page for that.
    if (!names.emplace(container.namespace_name, container.pod, container.name).second) continue;
    if (added + kSeries > UsageMetrics::kMostContainerSeries) {
      left_out += kSeries;
      continue;
    }
    added += kSeries;
    const UsageLabels labels = {{"container", container.name},
                                {"namespace", container.namespace_name},
                                {"pod", container.pod}};
    used.Add(labels, container.cpu_used);
    throttled.Add(labels, container.throttled);
    pressure.Add(labels, container.cpu_pressure);
    memory.Add(labels, container.memory_bytes);
    remote.Add(labels, container.remote_bytes);
  }
  for (UsageGauges* const gauges : {&used, &throttled, &pressure, &memory, &remote})
    gauges->MoveTo(families);
  return left_out;
}

void AddMonitors(const std::vector<UsageMetrics::Monitor>& monitors,
                 std::vector<prometheus::MetricFamily>& families) {
  UsageGauges cache("cri_resmgr_resctrl_llc_occupancy_bytes",
                    "Last-level cache that each resctrl group occupies");
  UsageGauges memory("cri_resmgr_resctrl_memory_bytes_per_second",
                     "Memory traffic of each resctrl group");
  for (const UsageMetrics::Monitor& monitor : monitors) {
    const UsageLabels labels = {{"group", monitor.group}};
    cache.Add(labels, monitor.llc_bytes);
    memory.Add(labels, monitor.bandwidth);
  }
  for (UsageGauges* const gauges : {&cache, &memory})
    gauges->MoveTo(families);
}

void AddSum(const char* name, const char* help, double value,
            std::vector<prometheus::MetricFamily>& families) {
  prometheus::MetricFamily& family =
      families.emplace_back(MakeFamily(name, help, prometheus::MetricType::Counter));
  family.metric.emplace_back().counter.value = value;
}

}  // namespace

class UsageMetrics::Impl final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    const std::lock_guard lock(mutex);
    std::vector<prometheus::MetricFamily> families = gauges;
    AddSum("cri_resmgr_usage_samples_total", "Samples of what is used", samples, families);
    AddSum("cri_resmgr_usage_sample_seconds_total", "CPU time that samples took", seconds,
           families);
    AddSum("cri_resmgr_usage_files_read_total", "Files of the kernel that samples read", files,
           families);
    AddSum("cri_resmgr_usage_series_left_out_total",
           "Series of single containers that were left out, counted with each sample", left_out,
           families);
    return families;
  }

  mutable std::mutex mutex;  // guards the following members
  std::vector<prometheus::MetricFamily> gauges;
  double samples = 0;
  double seconds = 0;
  double files = 0;
  double left_out = 0;
};

UsageMetrics::UsageMetrics() : impl_(std::make_shared<Impl>()) {}

UsageMetrics::~UsageMetrics() = default;

void UsageMetrics::Show(const Sample& sample) {
  std::vector<prometheus::MetricFamily> gauges;
  AddPools(sample.pools, gauges);
  AddNodes(sample.nodes, gauges);
  const size_t left_out = AddContainers(sample.containers, gauges);
  AddMonitors(sample.monitors, gauges);
  // Families without series would be lines without a meaning.
  std::erase_if(gauges, [](const auto& family) { return family.metric.empty(); });
  const std::lock_guard lock(impl_->mutex);
  // The old ones are destroyed after the lock: a scrape, on another thread, need not wait for that.
  impl_->gauges.swap(gauges);
  ++impl_->samples;
  impl_->seconds += sample.cost_seconds;
  impl_->files += static_cast<double>(sample.files);
  impl_->left_out += static_cast<double>(left_out);
}

void UsageMetrics::Clear() {
  std::vector<prometheus::MetricFamily> gauges;
  const std::lock_guard lock(impl_->mutex);
  impl_->gauges.swap(gauges);
}

std::shared_ptr<prometheus::Collectable> UsageMetrics::collectable() const {
  return impl_;
}

}  // namespace resmgr
