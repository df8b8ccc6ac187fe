// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pkg/resmgr/resource_manager.h"
#include "pkg/topology/cpu_set.h"
#include "pkg/usage/kernel_text.h"

namespace resmgr {

// Counters of one container's cgroup. Fields that the kernel does not report are not set.
struct ContainerCounters {
  std::chrono::steady_clock::time_point read_at{};  // when `cpu` was read
  CpuStat cpu{};
  // Counters of the pod's cgroup above, whose quota throttles this container, too.
  CpuStat pod_cpu{};
  std::string pod_cgroup{};  // the directory of that cgroup, as the host has it
  std::string cgroup{};      // the container's, in the hierarchy of the controller `memory`
  std::optional<Pressure> cpu_pressure{};
  std::optional<Pressure> memory_pressure{};
  std::optional<uint64_t> memory_bytes{};
  std::map<int, int64_t> memory_by_node{};
  MemoryEvents events{};
  // Limits, read only if `high` or `oom_kills` of `events` is not 0; not set: there is no limit.
  // Only cgroup v2 has memory.high.
  std::optional<uint64_t> memory_limit{};
  std::optional<uint64_t> memory_high{};
};

// A pod's cgroup on v2. Its counter outlives the pod's containers.
struct PodCounters {
  std::string name{};      // "namespace/pod"
  uint64_t oom_kills = 0;  // in all of the pod's containers, including ended ones
};

// Counters of a resctrl group, summed over the domains of its cache; not set if one of the parts is
// missing.
struct MonitorCounters {
  std::optional<uint64_t> llc_bytes{};
  std::optional<uint64_t> memory_traffic_bytes{};  // since the group was made
};

// The kernel's counters at one time.
struct UsageCounters {
  std::chrono::steady_clock::time_point at{};
  std::chrono::system_clock::time_point wall{};
  std::map<std::string, ContainerCounters> containers{};  // by id; only containers with a cgroup
  std::map<std::string, PodCounters> pods{};              // by the directories of their cgroups
  std::map<int, CpuTimes> cpus{};
  // Interrupts of exclusive CPUs that were recently busy with interrupts; other CPUs are not read.
  InterruptCounts interrupts{};
  std::map<int, NodeCounters> nodes{};
  std::map<std::string, MonitorCounters> monitors{};  // by the groups' names
  bool unified = false;                               // cgroup v2
  size_t files = 0;                                   // number of files that were read
  std::vector<std::string> notes{};  // for the log; each is there once in the reader's life
};

// A running container whose use is sampled, with the decisions about it. A value type.
struct UsageSubject {
  std::string id{};
  std::string namespace_name{};
  std::string pod{};
  std::string container{};
  std::string cgroup_parent{};
  CpuSet cpus{};       // empty: it is not bound
  CpuSet exclusive{};  // the part of `cpus` that no other container may use
  NodeSet mems{};      // memory nodes decided for it; empty: any
  std::string pool{};
  // The CPUs that the container can count on: its exclusive CPUs, or its request if that is more.
  double granted = 0;
  double limit = 0;  // CPUs; 0: none

  // "namespace/pod/container"
  std::string FullName() const;
};

// The running containers. None under the null policy.
std::vector<UsageSubject> UsageSubjects(const ResourceManager* manager);

}  // namespace resmgr
