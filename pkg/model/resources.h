// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "pkg/base/units.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Resources in a CRI message (LinuxContainerResources): an empty value means that the message did
// not set it. The sets stay text, because an empty or unusual list must not be changed on its way
// to the runtime. Decisions are about ResourceValues, made from this by ReadValues.
struct LinuxResources {
  std::optional<int64_t> cpu_period;  // microseconds
  std::optional<int64_t> cpu_quota;   // microseconds per period; -1: unlimited
  std::optional<int64_t> cpu_shares;
  std::optional<int64_t> memory_limit;  // bytes
  std::optional<int64_t> oom_score_adj;
  std::optional<std::string> cpuset_cpus;
  std::optional<std::string> cpuset_mems;
  std::map<std::string, uint64_t> hugepage_limits;  // page size ("2MB") to bytes

  friend bool operator==(const LinuxResources&, const LinuxResources&) = default;
};

// The resources of a container after an update: each field that `changes` sets wins over `base`.
LinuxResources Merged(LinuxResources base, const LinuxResources& changes);
// The same, in place.
void Merge(LinuxResources& base, const LinuxResources& changes);

// The needs of a container, as the policy sees them: from the annotation of the webhook where the
// request does not contradict it, else estimated from LinuxResources (pkg/model/requirements.h).
struct Requirements {
  MilliCpu cpu_request;
  MilliCpu cpu_limit;  // 0: unlimited
  Bytes memory_request;
  Bytes memory_limit;  // 0: unlimited
  // `memory_request` is a guess from the OOM score: it serves to choose a place, but is not a
  // reason to refuse the container.
  bool memory_estimated = false;
  // The container has no CPU request (memory limit) of its own, but may use the pod's resources.
  // `cpu_request` (`memory_request`) is then the part of the pod's request that its other
  // containers leave. Such a container gets no exclusive CPUs.
  bool cpu_of_pod = false;
  bool memory_of_pod = false;

  friend bool operator==(const Requirements&, const Requirements&) = default;
};

// Fields of LinuxContainerResources (CRI): those that this daemon decides, and memory. An empty
// value is not set, or not known.
struct ResourceValues {
  std::optional<CpuSet> cpus{};   // cpuset_cpus; never empty when set
  std::optional<NodeSet> mems{};  // cpuset_mems; never empty when set
  std::optional<int64_t> cpu_shares{};
  std::optional<int64_t> cpu_quota{};   // microseconds per period; -1 lifts the limit
  std::optional<int64_t> cpu_period{};  // microseconds
  // Not decided by this daemon. An update repeats the limit (in bytes) that another program has set
  // in the container's cgroup, since it would be undone otherwise (pkg/resmgr/cgroup_access.h).
  std::optional<int64_t> memory_limit{};
  std::optional<int64_t> memory_swap_limit{};  // of memory and swap together

  bool has_sets() const { return cpus || mems; }
  bool has_numbers() const { return cpu_shares || cpu_quota || cpu_period; }
  bool has_memory() const { return memory_limit || memory_swap_limit; }
  bool empty() const { return !has_sets() && !has_numbers() && !has_memory(); }
  friend bool operator==(const ResourceValues&, const ResourceValues&) = default;
};

// Numbers in force that differ from the policy's and the request's, because later stages or the
// runtime's own plugins have set them. They never become part of the container's request.
struct NumbersSetLater {
  std::optional<int64_t> cpu_shares{};
  std::optional<int64_t> cpu_quota{};
  std::optional<int64_t> cpu_period{};
  // The runtime has reported the values in force since its last update, and the numbers above have
  // the differences. Any further difference comes from another client of the runtime.
  bool reported = false;

  friend bool operator==(const NumbersSetLater&, const NumbersSetLater&) = default;
};

// The values in the form of a runtime's message, without the limit of swap. Other fields stay
// empty.
LinuxResources AsResources(const ResourceValues& values);

// The values of a message, without memory. A list that cannot be read counts as unknown; an empty
// one as not set, since runtimes report it for a container without restriction.
ResourceValues ReadValues(const LinuxResources& resources);

// The values of `wanted`, except memory, that differ from `present`. A value that `wanted` lacks is
// never a difference.
ResourceValues Difference(const ResourceValues& wanted, const ResourceValues& present);

// The CPU numbers of a container in a runtime's report. An empty value was not reported, or
// reported as 0, which runtimes write in its place.
struct CpuNumbers {
  std::optional<int64_t> shares{};
  std::optional<int64_t> quota{};   // microseconds per period; -1: unlimited
  std::optional<int64_t> period{};  // microseconds
  // The report has a file of cgroup v2 that means the same as `shares` (unified_files.h).
  bool shares_in_file = false;

  friend bool operator==(const CpuNumbers&, const CpuNumbers&) = default;
};

}  // namespace resmgr
