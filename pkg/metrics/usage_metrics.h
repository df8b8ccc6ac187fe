// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace prometheus {
class Collectable;
}  // namespace prometheus

namespace resmgr {

// Metrics of what containers, pools and memory nodes use, with the prefix cri_resmgr_: gauges as of
// the last sample, and counters of the kernel's events. Thread-safe.
class UsageMetrics {
 public:
  // Limit of containers with series of their own; further containers are only counted.
  static constexpr size_t kMostContainerSeries = 5000;

  UsageMetrics();
  ~UsageMetrics();
  UsageMetrics(const UsageMetrics&) = delete;
  UsageMetrics& operator=(const UsageMetrics&) = delete;

  struct Pool {
    std::string name{};
    double cpu_used = 0;                      // pool_cpu_used{pool}: CPUs
    std::optional<double> cpu_pressure{};     // pool_cpu_pressure_ratio{pool}
    std::map<int, int64_t> memory_by_node{};  // pool_memory_used_bytes{pool,node}
    int64_t remote_bytes = 0;                 // pool_memory_remote_bytes{pool}
  };
  struct Node {
    int id = 0;
    double cpu_used = 0;                    // numa_cpu_used{node}: CPUs
    std::optional<int64_t> memory_bytes{};  // numa_memory_used_bytes{node}
    int64_t container_bytes = 0;            // numa_memory_container_bytes{node}
  };
  struct Container {
    std::string namespace_name{};
    std::string pod{};
    std::string name{};
    std::optional<double> cpu_used{};        // container_cpu_used
    std::optional<double> throttled{};       // container_cpu_throttled_ratio
    std::optional<double> cpu_pressure{};    // container_cpu_pressure_ratio
    std::optional<uint64_t> memory_bytes{};  // container_memory_used_bytes
    std::optional<int64_t> remote_bytes{};   // container_memory_remote_bytes
    // The following two count since the container's cgroup was made.
    std::optional<uint64_t> oom_kills{};    // container_oom_kills_total
    std::optional<uint64_t> memory_high{};  // container_memory_high_total
  };
  struct Monitor {
    std::string group{};
    std::optional<uint64_t> llc_bytes{};  // resctrl_llc_occupancy_bytes{group}
    std::optional<double> bandwidth{};    // resctrl_memory_bytes_per_second{group}
  };
  struct Sample {
    std::vector<Pool> pools{};
    std::vector<Node> nodes{};
    std::vector<Container> containers{};  // empty: series of containers are not wanted
    std::vector<Monitor> monitors{};
    double cost_seconds = 0;  // usage_sample_seconds_total
    uint64_t files = 0;       // usage_files_read_total
    uint64_t oom_kills = 0;   // oom_kills_total; between this sample and the one before
  };
  // The series of containers, ready for scrapes: thousands of labels. They may be made, and
  // destroyed, on any thread.
  class Series;
  using SeriesPtr = std::shared_ptr<const Series>;
  static SeriesPtr MakeSeries(const std::vector<Container>& containers);

  // Also counts usage_samples_total. `series` are the containers' series; if nullptr, they are made
  // from Sample::containers. Returns the series shown before, for another thread to destroy.
  SeriesPtr Show(const Sample& sample, SeriesPtr series = nullptr);
  // Removes the figures of use, which are unknown from now on; totals stay.
  void Clear();

  // The collectable for a scrape.
  std::shared_ptr<prometheus::Collectable> collectable() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace resmgr
