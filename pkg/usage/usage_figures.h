// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pkg/usage/usage_counters.h"

namespace resmgr {

// Figures of use, computed from two samples of the kernel's counters. Amounts of CPU are in CPUs,
// averaged between the samples; all other values are from the second sample. A field that is not
// set is not known.

struct ContainerFigures {
  UsageSubject subject{};
  std::optional<double> cpu_used{};
  // The percentage of quota periods in which the container's quota, or its pod's, was used up.
  std::optional<double> throttled_percent{};
  std::optional<double> pod_throttled_percent{};
  std::string pod_cgroup{};  // the directory with the pod's quota
  std::string cgroup{};      // the container's, in the hierarchy of the controller `memory`
  std::optional<Pressure> cpu_pressure{};
  std::optional<Pressure> memory_pressure{};
  // Percent of the time between the samples in which some task waited for a CPU.
  std::optional<double> waited_percent{};
  std::optional<uint64_t> memory_bytes{};
  std::map<int, int64_t> memory_by_node{};
  int64_t remote_bytes = 0;  // the part of `memory_by_node` on nodes not decided for it
  std::optional<double> remote_percent{};
  // CPU time, in CPUs, that others used on its CPUs, without interrupts: usually tasks of the
  // kernel. Set if all its CPUs are exclusive.
  std::optional<double> others_used{};
  uint64_t oom_kills = 0;    // between the samples, as the next two fields
  uint64_t high_events = 0;  // reclaims at memory.high
  // How often its own limit left no memory; not set: the kernel does not report this.
  std::optional<uint64_t> oom_events{};
  MemoryEvents events{};  // since its cgroup was made
  // Limits of its cgroup, in bytes. Known only if `high` or `oom_kills` of `events` is not 0. Not
  // set: no limit.
  std::optional<uint64_t> memory_limit{};
  std::optional<uint64_t> memory_high{};
  bool reset = false;  // its counters were reset between the samples

  // The larger one of both throttled percentages.
  std::optional<double> AnyThrottledPercent() const;
  // Whether tasks waited for a quota that was used up, which the kernel counts as CPU pressure.
  bool IsThrottled() const;
  // The percentage of the time in which some task waited for a CPU, and not for a quota.
  std::optional<double> PressureForCpus() const;
};

struct CpuFigures {
  double busy_percent = 0;  // includes interrupts, excludes time taken by the hypervisor
  double irq_percent = 0;   // with softirqs
  double steal_percent = 0;
  // The most frequent interrupt and its rate per second, if the CPU's interrupts were counted.
  TopInterrupt top_interrupt{};
  double interrupts_per_second = 0;
};

// Percent of the time between two readings that interrupts took, softirqs included.
double IrqPercent(const CpuTimes& before, const CpuTimes& now);

struct NodeFigures {
  std::optional<int64_t> total_bytes{};
  std::optional<int64_t> used_bytes{};
  int64_t container_bytes = 0;                  // the part of `used_bytes` in containers
  std::optional<double> other_pages_percent{};  // the part that tasks of other nodes allocated
};

// The containers of one pool together. Containers without a pool are in none.
struct PoolFigures {
  CpuSet cpus{};  // shared CPUs that they may use
  double cpu_used = 0;
  double busy = 0;                         // busy CPUs among `cpus`, whatever uses them
  std::optional<Pressure> cpu_pressure{};  // the highest one of the containers
  // The highest one of containers without exclusive CPUs and without throttling, which the kernel
  // also counts as pressure.
  std::optional<Pressure> waiting{};
  std::map<int, int64_t> memory_by_node{};
  int64_t remote_bytes = 0;
  size_t containers = 0;
  bool shared = false;  // some of them have no exclusive CPUs
};

// Kills between the samples in those containers of a pod that are not in both samples.
struct PodKills {
  std::string name{};  // "namespace/pod"
  uint64_t count = 0;
};

struct MonitorFigures {
  std::optional<uint64_t> llc_bytes{};
  std::optional<double> memory_bytes_per_second{};
};

struct UsageFigures {
  std::chrono::system_clock::time_point since{};  // the first sample
  std::chrono::system_clock::time_point until{};  // the second one
  std::chrono::steady_clock::time_point from{};   // the first sample, by a clock without steps
  std::chrono::steady_clock::time_point at{};     // the second one
  std::vector<ContainerFigures> containers{};     // in the order of the subjects
  std::vector<PodKills> pods{};                   // only pods with kills
  std::map<int, CpuFigures> cpus{};
  std::map<int, NodeFigures> nodes{};
  std::map<std::string, PoolFigures> pools{};
  std::map<std::string, MonitorFigures> monitors{};
  double cpu_used = 0;    // CPUs in use on the machine; containers together use no more
  bool complete = false;  // there were two samples
  bool unified = false;
  size_t files = 0;
  std::chrono::nanoseconds cost{};  // CPU time for the second sample and these figures
  std::vector<std::string> notes{};
};

// The number of busy CPUs among these.
double BusyCpus(const UsageFigures& figures, const CpuSet& cpus);

// `before`: an earlier sample, or nullptr. Containers without a cgroup are left out.
UsageFigures ComputeUsage(const UsageCounters* before, const UsageCounters& now,
                          const std::vector<UsageSubject>& subjects);

}  // namespace resmgr
