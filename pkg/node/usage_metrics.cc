// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/usage_metrics.h"

#include <chrono>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "pkg/metrics/collect.h"

namespace resmgr {
namespace {

using UsageLabels = std::vector<prometheus::ClientMetric::Label>;

// A family that is rebuilt with each sample, so that the series of removed objects disappear.
class UsageFamily {
 public:
  UsageFamily(const char* name, const char* help,
              prometheus::MetricType type = prometheus::MetricType::Gauge)
      : family_(MakeFamily(name, help, type)) {}

  void Add(const UsageLabels& labels, std::optional<double> value) {
    if (!value) return;
    prometheus::ClientMetric& metric = family_.metric.emplace_back();
    metric.label = labels;
    (family_.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) =
        *value;
  }
  void MoveTo(std::vector<prometheus::MetricFamily>& families) {
    families.push_back(std::move(family_));
  }

 private:
  prometheus::MetricFamily family_;
};

// One gauge, or one counter of the kernel, for a kind of objects, and the function that reads its
// value; nullopt: the value is unknown.
template <typename Thing>
struct MetricRow {
  const char* name;
  const char* help;
  std::optional<double> (*value)(const Thing& thing);
  prometheus::MetricType type = prometheus::MetricType::Gauge;
};

template <typename Number>
std::optional<double> AsDouble(const std::optional<Number>& value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

std::optional<double> RatioOf(const std::optional<double>& percent) {
  if (!percent) return std::nullopt;
  return *percent / 100;
}

std::optional<double> RatioOf(const std::optional<Pressure>& pressure) {
  if (!pressure) return std::nullopt;
  return pressure->some60 / 100;
}

constexpr MetricRow<PoolFigures> kPoolRows[] = {
    {"cri_resmgr_pool_cpu_used", "CPUs that the containers of each pool use",
     [](const PoolFigures& pool) { return std::optional(pool.cpu_used); }},
    {"cri_resmgr_pool_cpu_pressure_ratio",
     "The highest CPU pressure (some, 60 s) of a container of each pool",
     [](const PoolFigures& pool) { return RatioOf(pool.cpu_pressure); }},
    {"cri_resmgr_pool_memory_remote_bytes",
     "Memory of the containers of each pool on other nodes than decided",
     [](const PoolFigures& pool) { return AsDouble(std::optional(pool.remote_bytes)); }},
};

constexpr MetricRow<NodeFigures> kNodeRows[] = {
    {"cri_resmgr_numa_memory_used_bytes", "Memory of each NUMA node that is not free",
     [](const NodeFigures& node) { return AsDouble(node.used_bytes); }},
    {"cri_resmgr_numa_memory_container_bytes", "Memory of each NUMA node that containers have",
     [](const NodeFigures& node) { return AsDouble(std::optional(node.container_bytes)); }},
};

constexpr MetricRow<ContainerFigures> kContainerRows[] = {
    {"cri_resmgr_container_cpu_used", "CPUs that each container uses",
     [](const ContainerFigures& container) { return container.cpu_used; }},
    {"cri_resmgr_container_cpu_throttled_ratio",
     "Periods in which a quota throttled each container",
     [](const ContainerFigures& container) { return RatioOf(container.AnyThrottledPercent()); }},
    {"cri_resmgr_container_cpu_pressure_ratio", "CPU pressure (some, 60 s) of each container",
     [](const ContainerFigures& container) { return RatioOf(container.cpu_pressure); }},
    {"cri_resmgr_container_memory_used_bytes", "Memory that each container has",
     [](const ContainerFigures& container) { return AsDouble(container.memory_bytes); }},
    {"cri_resmgr_container_memory_remote_bytes",
     "Memory of each container on other nodes than decided",
     [](const ContainerFigures& container) {
       return container.remote_percent ? AsDouble(std::optional(container.remote_bytes))
                                       : std::nullopt;
     }},
    {"cri_resmgr_container_oom_kills_total",
     "Processes of each container that were killed for want of memory",
     [](const ContainerFigures& container) { return AsDouble(container.events.oom_kills); },
     prometheus::MetricType::Counter},
    {"cri_resmgr_container_memory_high_total", "How often each container reached memory.high",
     [](const ContainerFigures& container) { return AsDouble(container.events.high); },
     prometheus::MetricType::Counter},
};

constexpr MetricRow<MonitorFigures> kMonitorRows[] = {
    {"cri_resmgr_resctrl_llc_occupancy_bytes", "Last-level cache that each resctrl group occupies",
     [](const MonitorFigures& monitor) { return AsDouble(monitor.llc_bytes); }},
    {"cri_resmgr_resctrl_memory_bytes_per_second", "Memory traffic of each resctrl group",
     [](const MonitorFigures& monitor) { return monitor.memory_bytes_per_second; }},
};

// Collects the metrics of a table for one object after the other.
template <typename Thing, size_t kRows>
class MetricTable {
 public:
  explicit MetricTable(const MetricRow<Thing> (&rows)[kRows]) : rows_(rows) {
    for (const MetricRow<Thing>& row : rows)
      families_.emplace_back(row.name, row.help, row.type);
  }
  void Add(const UsageLabels& labels, const Thing& thing) {
    for (size_t i = 0; i < kRows; ++i)
      families_[i].Add(labels, rows_[i].value(thing));
  }
  void MoveTo(std::vector<prometheus::MetricFamily>& families) {
    for (UsageFamily& family : families_)
      family.MoveTo(families);
  }

 private:
  const MetricRow<Thing> (&rows_)[kRows];
  std::vector<UsageFamily> families_;
};

void AddPools(const UsageFigures& figures, std::vector<prometheus::MetricFamily>& families) {
  MetricTable table(kPoolRows);
  UsageFamily memory("cri_resmgr_pool_memory_used_bytes",
                     "Memory that the containers of each pool have on each memory node");
  for (const auto& [name, pool] : figures.pools) {
    table.Add({{"pool", name}}, pool);
    for (const auto& [node, bytes] : pool.memory_by_node)
      memory.Add({{"node", std::to_string(node)}, {"pool", name}}, static_cast<double>(bytes));
  }
  table.MoveTo(families);
  memory.MoveTo(families);
}

void AddNodes(const UsageFigures& figures, const Machine& machine,
              std::vector<prometheus::MetricFamily>& families) {
  MetricTable table(kNodeRows);
  UsageFamily cpus("cri_resmgr_numa_cpu_used", "CPUs of each NUMA node that are busy");
  for (const auto& [id, node] : figures.nodes) {
    const UsageLabels labels = {{"node", std::to_string(id)}};
    const NumaNode* const known = machine.FindNode(id);
    cpus.Add(labels, known == nullptr ? 0 : BusyCpus(figures, known->cpus));
    table.Add(labels, node);
  }
  cpus.MoveTo(families);
  table.MoveTo(families);
}

// Returns how many series were left out.
size_t AddContainers(std::span<const ContainerFigures> containers,
                     std::vector<prometheus::MetricFamily>& families) {
  MetricTable table(kContainerRows);
  constexpr size_t kSeries = std::size(kContainerRows);
  size_t left_out = 0;
  size_t added = 0;
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> names;
  for (const ContainerFigures& container : containers) {
    const UsageSubject& subject = container.subject;
    // A second container of the same name would repeat a series, and Prometheus would refuse the
    // whole scrape.
    if (!names.emplace(subject.namespace_name, subject.pod, subject.container).second) continue;
    if (added + kSeries > UsageMetrics::kMostContainerSeries) {
      left_out += kSeries;
      continue;
    }
    added += kSeries;
    table.Add({{"container", subject.container},
               {"namespace", subject.namespace_name},
               {"pod", subject.pod}},
              container);
  }
  table.MoveTo(families);
  return left_out;
}

void AddMonitors(const UsageFigures& figures, std::vector<prometheus::MetricFamily>& families) {
  MetricTable table(kMonitorRows);
  for (const auto& [name, monitor] : figures.monitors)
    table.Add({{"group", name}}, monitor);
  table.MoveTo(families);
}

// Processes killed for want of memory between the samples, including those whose container ended
// with them.
uint64_t KillsOf(const UsageFigures& figures) {
  uint64_t kills = 0;
  for (const ContainerFigures& container : figures.containers)
    kills += container.reset ? 0 : container.oom_kills;
  for (const PodKills& pod : figures.pods)
    kills += pod.count;
  return kills;
}

// Removes families without series, since their lines would mean nothing.
void DropEmpty(std::vector<prometheus::MetricFamily>& families) {
  std::erase_if(families, [](const auto& family) { return family.metric.empty(); });
}

void AddSum(const char* name, const char* help, double value,
            std::vector<prometheus::MetricFamily>& families) {
  prometheus::MetricFamily& family =
      families.emplace_back(MakeFamily(name, help, prometheus::MetricType::Counter));
  family.metric.emplace_back().counter.value = value;
}

}  // namespace

class UsageMetrics::Series {
 public:
  explicit Series(std::span<const ContainerFigures> containers) {
    left_out = AddContainers(containers, families);
    DropEmpty(families);
  }

  std::vector<prometheus::MetricFamily> families;
  size_t left_out = 0;
};

class UsageMetrics::Impl final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    const std::lock_guard lock(mutex);
    std::vector<prometheus::MetricFamily> families = gauges;
    if (series != nullptr)
      families.insert(families.end(), series->families.begin(), series->families.end());
    AddSum("cri_resmgr_usage_samples_total", "Samples of what is used", samples, families);
    AddSum("cri_resmgr_usage_sample_seconds_total", "CPU time that samples took", seconds,
           families);
    AddSum("cri_resmgr_usage_files_read_total", "Files of the kernel that samples read", files,
           families);
    AddSum("cri_resmgr_usage_series_left_out_total",
           "Series of single containers that were left out, counted with each sample", left_out,
           families);
    AddSum("cri_resmgr_oom_kills_total",
           "Processes of containers that were killed for want of memory, by the samples", oom_kills,
           families);
    return families;
  }

  mutable std::mutex mutex;  // guards the following members
  std::vector<prometheus::MetricFamily> gauges;
  SeriesPtr series;
  double samples = 0;
  double seconds = 0;
  double files = 0;
  double left_out = 0;
  double oom_kills = 0;
};

UsageMetrics::UsageMetrics() : impl_(std::make_shared<Impl>()) {}

UsageMetrics::~UsageMetrics() = default;

UsageMetrics::SeriesPtr UsageMetrics::MakeSeries(std::span<const ContainerFigures> containers) {
  return std::make_shared<const Series>(containers);
}

UsageMetrics::SeriesPtr UsageMetrics::Show(const UsageFigures& figures, const Machine& machine,
                                           SeriesPtr series) {
  std::vector<prometheus::MetricFamily> gauges;
  AddPools(figures, gauges);
  AddNodes(figures, machine, gauges);
  AddMonitors(figures, gauges);
  DropEmpty(gauges);
  const uint64_t kills = KillsOf(figures);
  const std::lock_guard lock(impl_->mutex);
  // The old families are destroyed after the lock is released, so that a scrape on another thread
  // does not wait for that.
  impl_->gauges.swap(gauges);
  impl_->series.swap(series);
  ++impl_->samples;
  impl_->seconds += std::chrono::duration<double>(figures.cost).count();
  impl_->files += static_cast<double>(figures.files);
  impl_->left_out += static_cast<double>(impl_->series->left_out);
  impl_->oom_kills += static_cast<double>(kills);
  return series;
}

void UsageMetrics::Clear() {
  std::vector<prometheus::MetricFamily> gauges;
  SeriesPtr series;
  const std::lock_guard lock(impl_->mutex);
  impl_->gauges.swap(gauges);
  impl_->series.swap(series);
}

std::shared_ptr<prometheus::Collectable> UsageMetrics::collectable() const {
  return impl_;
}

}  // namespace resmgr
