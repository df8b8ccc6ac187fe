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
// on average between the samples; all others are as of the second one. A field that is not set is
// not known.

struct ContainerFigures {
  UsageSubject subject{};
  std::optional<double> cpu_used{};
  // Percent of the periods of a quota in which it was used up: its own, and the one of its pod.
  std::optional<double> throttled_percent{};
  std::optional<double> pod_throttled_percent{};
  std::string pod_cgroup{};  // the directory with the pod's quota
  std::string cgroup{};      // its own, of the controller `memory`
  std::optional<Pressure> cpu_pressure{};
  std::optional<Pressure> memory_pressure{};
  // Percent of the time between the samples in which some task waited for a CPU.
  std::optional<double> waited_percent{};
  std::optional<uint64_t> memory_bytes{};
  std::map<int, int64_t> memory_by_node{};
  int64_t remote_bytes = 0;  // the part of these on other nodes than its own
  std::optional<double> remote_percent{};
  // Use of its own CPUs by others, in CPUs, without interrupts: usually by tasks of the kernel. Set
  // if all its CPUs are its own.
  std::optional<double> others_used{};
  uint64_t oom_kills = 0;    // between the samples, as the next ones
  uint64_t high_events = 0;  // reclaims at memory.high
  // How often its own limit left no memory; not set: the kernel does not tell.
  std::optional<uint64_t> oom_events{};
  MemoryEvents events{};  // since its cgroup was made
  // Limits of its cgroup, in bytes; known only after one of `events`. Not set: there is none.
  std::optional<uint64_t> memory_limit{};
  std::optional<uint64_t> memory_high{};
  bool reset = false;  // its counters began anew between the samples

  // The larger one of both percentages.
  std::optional<double> AnyThrottledPercent() const;
  // A quota was used up, for which its tasks waited, which the kernel counts as pressure.
  bool IsThrottled() const;
  // Percent of the time in which some task waited for a CPU and not for a quota.
  std::optional<double> PressureForCpus() const;
};

struct CpuFigures {
  double busy_percent = 0;  // includes interrupts, excludes time taken by the hypervisor
  double irq_percent = 0;   // with softirqs
  double steal_percent = 0;
  // The most frequent interrupt and its rate per second, for CPUs where interrupts were counted.
  TopInterrupt top_interrupt{};
  double interrupts_per_second = 0;
};

// Percent of the time between two readings that interrupts took, softirqs included.
double IrqPercent(const CpuTimes& before, const CpuTimes& now);

struct NodeFigures {
  std::optional<int64_t> total_bytes{};
  std::optional<int64_t> used_bytes{};
  int64_t container_bytes = 0;                  // the part of these that containers have
  std::optional<double> other_pages_percent{};  // allocated by tasks of other nodes
};

// The containers of one pool together. Containers without a pool have none.
struct PoolFigures {
  CpuSet cpus{};  // CPUs that they may use and that are not exclusive
  double cpu_used = 0;
  double busy = 0;                         // busy CPUs of `cpus`, for any user
  std::optional<Pressure> cpu_pressure{};  // the highest one of its containers
  // The highest one of containers without CPUs of their own and without throttling, which the
  // kernel also counts as pressure.
  std::optional<Pressure> waiting{};
  std::map<int, int64_t> memory_by_node{};
  int64_t remote_bytes = 0;
  size_t containers = 0;
  bool shared = false;  // some of them have no CPUs of their own
};

// Kills between the samples in containers of a pod that are not in both of them.
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
  std::vector<PodKills> pods{};                   // only pods with such kills
  std::map<int, CpuFigures> cpus{};
  std::map<int, NodeFigures> nodes{};
  std::map<std::string, PoolFigures> pools{};
  std::map<std::string, MonitorFigures> monitors{};
  double cpu_used = 0;    // memory of the machine; all containers together have no more
  bool complete = false;  // there were two samples
  bool unified = false;
  size_t files = 0;
  std::chrono::nanoseconds cost{};  // CPU time of the second sample and of these figures
  std::vector<std::string> notes{};
};

// How many of these CPUs were busy.
double BusyCpus(const UsageFigures& figures, const CpuSet& cpus);

// `before`: an earlier sample, or nullptr. Containers without a cgroup are left out.
UsageFigures ComputeUsage(const UsageCounters* before, const UsageCounters& now,
                          const std::vector<UsageSubject>& subjects);

}  // namespace resmgr
