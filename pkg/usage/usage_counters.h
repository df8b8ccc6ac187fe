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

// One container's cgroup. The kernel does not tell the fields that are not set.
struct ContainerCounters {
  std::chrono::steady_clock::time_point read_at{};  // when `cpu` was read
  CpuStat cpu{};
  // The cgroup above, which is the pod's: its quota throttles this container, too.
  CpuStat pod_cpu{};
  std::string pod_cgroup{};  // that directory
  std::string cgroup{};      // the container's, of the controller `memory`
  std::optional<Pressure> cpu_pressure{};
  std::optional<Pressure> memory_pressure{};
  std::optional<uint64_t> memory_bytes{};
  std::map<int, int64_t> memory_by_node{};
  MemoryEvents events{};
  // Read only where `events` are not 0; not set: there is none. memory.high is of cgroup v2.
  std::optional<uint64_t> memory_limit{};
  std::optional<uint64_t> memory_high{};
};

// The cgroup of a pod on v2, whose counter outlives the pod's containers.
struct PodCounters {
  std::string name{};      // "namespace/pod"
  uint64_t oom_kills = 0;  // with those of all its containers, also of those that have ended
};

// One resctrl group, summed over the domains of its cache; not set where one of these is missing.
struct MonitorCounters {
  std::optional<uint64_t> llc_bytes{};
  std::optional<uint64_t> memory_traffic_bytes{};  // since the group was made
};

// The kernel's counters at one time.
struct UsageCounters {
  std::chrono::steady_clock::time_point at{};
  std::chrono::system_clock::time_point wall{};
  std::map<std::string, ContainerCounters> containers{};  // by id; only those with a cgroup
  std::map<std::string, PodCounters> pods{};              // by the directories of their cgroups
  std::map<int, CpuTimes> cpus{};
  // Counts for exclusive CPUs that were busy with interrupts lately; other CPUs are not read.
  InterruptCounts interrupts{};
  std::map<int, NodeCounters> nodes{};
  std::map<std::string, MonitorCounters> monitors{};  // by the groups' names
  bool unified = false;                               // cgroup v2
  size_t files = 0;                                   // number of files that were read
  std::vector<std::string> notes{};  // messages for the log, each once in a life of the reader
};

// A running container whose use is sampled, and the decision for it. A value.
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
  // In CPUs: the number of its own CPUs, or its request if that is more.
  double granted = 0;
  double limit = 0;  // CPUs; 0: none

  // "namespace/pod/container"
  std::string FullName() const;
};

// Those that run. None under the null policy.
std::vector<UsageSubject> UsageSubjects(const ResourceManager* manager);

}  // namespace resmgr
