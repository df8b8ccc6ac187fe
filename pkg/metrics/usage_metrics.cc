// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/usage_metrics.h"

#include <iterator>
#include <mutex>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

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

  template <typename Number>
  void Add(const UsageLabels& labels, std::optional<Number> value) {
    if (!value) return;
    prometheus::ClientMetric& metric = family_.metric.emplace_back();
    metric.label = labels;
    const auto number = static_cast<double>(*value);
    (family_.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) =
        number;
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

constexpr MetricRow<UsageMetrics::Pool> kPoolRows[] = {
    {"cri_resmgr_pool_cpu_used", "CPUs that the containers of each pool use",
     [](const UsageMetrics::Pool& pool) { return std::optional(pool.cpu_used); }},
    {"cri_resmgr_pool_cpu_pressure_ratio",
     "The highest CPU pressure (some, 60 s) of a container of each pool",
     [](const UsageMetrics::Pool& pool) { return pool.cpu_pressure; }},
    {"cri_resmgr_pool_memory_remote_bytes",
     "Memory of the containers of each pool on other nodes than decided",
     [](const UsageMetrics::Pool& pool) { return AsDouble(std::optional(pool.remote_bytes)); }},
};

constexpr MetricRow<UsageMetrics::Node> kNodeRows[] = {
    {"cri_resmgr_numa_cpu_used", "CPUs of each NUMA node that are busy",
     [](const UsageMetrics::Node& node) { return std::optional(node.cpu_used); }},
    {"cri_resmgr_numa_memory_used_bytes", "Memory of each NUMA node that is not free",
     [](const UsageMetrics::Node& node) { return AsDouble(node.memory_bytes); }},
    {"cri_resmgr_numa_memory_container_bytes", "Memory of each NUMA node that containers have",
     [](const UsageMetrics::Node& node) { return AsDouble(std::optional(node.container_bytes)); }},
};

constexpr MetricRow<UsageMetrics::Container> kContainerRows[] = {
    {"cri_resmgr_container_cpu_used", "CPUs that each container uses",
     [](const UsageMetrics::Container& container) { return container.cpu_used; }},
    {"cri_resmgr_container_cpu_throttled_ratio",
     "Periods in which a quota throttled each container",
     [](const UsageMetrics::Container& container) { return container.throttled; }},
    {"cri_resmgr_container_cpu_pressure_ratio", "CPU pressure (some, 60 s) of each container",
     [](const UsageMetrics::Container& container) { return container.cpu_pressure; }},
    {"cri_resmgr_container_memory_used_bytes", "Memory that each container has",
     [](const UsageMetrics::Container& container) { return AsDouble(container.memory_bytes); }},
    {"cri_resmgr_container_memory_remote_bytes",
     "Memory of each container on other nodes than decided",
     [](const UsageMetrics::Container& container) { return AsDouble(container.remote_bytes); }},
    {"cri_resmgr_container_oom_kills_total",
     "Processes of each container that were killed for want of memory",
     [](const UsageMetrics::Container& container) { return AsDouble(container.oom_kills); },
     prometheus::MetricType::Counter},
    {"cri_resmgr_container_memory_high_total", "How often each container reached memory.high",
     [](const UsageMetrics::Container& container) { return AsDouble(container.memory_high); },
     prometheus::MetricType::Counter},
};

constexpr MetricRow<UsageMetrics::Monitor> kMonitorRows[] = {
    {"cri_resmgr_resctrl_llc_occupancy_bytes", "Last-level cache that each resctrl group occupies",
     [](const UsageMetrics::Monitor& monitor) { return AsDouble(monitor.llc_bytes); }},
    {"cri_resmgr_resctrl_memory_bytes_per_second", "Memory traffic of each resctrl group",
     [](const UsageMetrics::Monitor& monitor) { return monitor.bandwidth; }},
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

void AddPools(const std::vector<UsageMetrics::Pool>& pools,
              std::vector<prometheus::MetricFamily>& families) {
  MetricTable table(kPoolRows);
  UsageFamily memory("cri_resmgr_pool_memory_used_bytes",
                     "Memory that the containers of each pool have on each memory node");
  for (const UsageMetrics::Pool& pool : pools) {
    table.Add({{"pool", pool.name}}, pool);
    for (const auto& [node, bytes] : pool.memory_by_node)
      memory.Add({{"node", std::to_string(node)}, {"pool", pool.name}}, std::optional(bytes));
  }
  table.MoveTo(families);
  memory.MoveTo(families);
}

void AddNodes(const std::vector<UsageMetrics::Node>& nodes,
              std::vector<prometheus::MetricFamily>& families) {
  MetricTable table(kNodeRows);
  for (const UsageMetrics::Node& node : nodes)
    table.Add({{"node", std::to_string(node.id)}}, node);
  table.MoveTo(families);
}

// Returns how many series were left out.
size_t AddContainers(const std::vector<UsageMetrics::Container>& containers,
                     std::vector<prometheus::MetricFamily>& families) {
  MetricTable table(kContainerRows);
  constexpr size_t kSeries = std::size(kContainerRows);
  size_t left_out = 0;
  size_t added = 0;
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> names;
  for (const UsageMetrics::Container& container : containers) {
    // A second container of the same name would repeat a series, and Prometheus would refuse the
    // whole scrape.
    if (!names.emplace(container.namespace_name, container.pod, container.name).second) continue;
    if (added + kSeries > UsageMetrics::kMostContainerSeries) {
      left_out += kSeries;
      continue;
    }
    added += kSeries;
    const UsageLabels labels = {{"container", container.name},
                                {"namespace", container.namespace_name},
                                {"pod", container.pod}};
    table.Add(labels, container);
  }
  table.MoveTo(families);
  return left_out;
}

void AddMonitors(const std::vector<UsageMetrics::Monitor>& monitors,
                 std::vector<prometheus::MetricFamily>& families) {
  MetricTable table(kMonitorRows);
  for (const UsageMetrics::Monitor& monitor : monitors)
    table.Add({{"group", monitor.group}}, monitor);
  table.MoveTo(families);
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
  explicit Series(const std::vector<Container>& containers) {
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

UsageMetrics::SeriesPtr UsageMetrics::MakeSeries(const std::vector<Container>& containers) {
  return std::make_shared<const Series>(containers);
}

UsageMetrics::SeriesPtr UsageMetrics::Show(const Sample& sample, SeriesPtr series) {
  std::vector<prometheus::MetricFamily> gauges;
  AddPools(sample.pools, gauges);
  AddNodes(sample.nodes, gauges);
  AddMonitors(sample.monitors, gauges);
  DropEmpty(gauges);
  if (series == nullptr) series = MakeSeries(sample.containers);
  const std::lock_guard lock(impl_->mutex);
  // The old families are destroyed after the lock is released, so that a scrape on another thread
  // does not wait for that.
  impl_->gauges.swap(gauges);
  impl_->series.swap(series);
  ++impl_->samples;
  impl_->seconds += sample.cost_seconds;
  impl_->files += static_cast<double>(sample.files);
  impl_->left_out += static_cast<double>(impl_->series->left_out);
  impl_->oom_kills += static_cast<double>(sample.oom_kills);
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
