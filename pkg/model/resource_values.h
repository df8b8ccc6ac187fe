// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "pkg/model/resources.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Fields of LinuxContainerResources (CRI): those that this daemon decides about, and memory. An
// empty value is one that is not set, or not known.
struct ResourceValues {
  std::optional<CpuSet> cpus{};   // cpuset_cpus; never empty when set
  std::optional<NodeSet> mems{};  // cpuset_mems; never empty when set
  std::optional<int64_t> cpu_shares{};
  std::optional<int64_t> cpu_quota{};   // microseconds per period; -1 lifts the limit
  std::optional<int64_t> cpu_period{};  // microseconds
  // Never decided here. In an update: the limit that another program has set in the container's
  // cgroup, so that the update does not undo it (pkg/resmgr/values_of_others.h). Bytes.
  std::optional<int64_t> memory_limit{};
  std::optional<int64_t> memory_swap_limit{};  // of memory and swap together

  bool has_sets() const { return cpus || mems; }
  bool has_numbers() const { return cpu_shares || cpu_quota || cpu_period; }
  bool has_memory() const { return memory_limit || memory_swap_limit; }
  bool empty() const { return !has_sets() && !has_numbers() && !has_memory(); }
  friend bool operator==(const ResourceValues&, const ResourceValues&) = default;
};

// Numbers of a container that are in force in place of the policy's and the request's: later stages
// or the runtime's own plugins set them. The container's request never follows from them.
struct NumbersSetLater {
  std::optional<int64_t> cpu_shares{};
  std::optional<int64_t> cpu_quota{};
  std::optional<int64_t> cpu_period{};
  // The runtime has reported the values in force since its last update, and differences are in the
  // numbers above: any further difference comes from another client of the runtime.
  bool reported = false;

  friend bool operator==(const NumbersSetLater&, const NumbersSetLater&) = default;
};

// The values as a runtime reads them, without the limit of swap; the other fields stay empty.
LinuxResources AsResources(const ResourceValues& values);

// The values in a message, without memory. A list that cannot be read counts as unknown, an empty
// one as not set, since runtimes write it for a container without restriction.
ResourceValues ReadValues(const LinuxResources& resources);

// The values of `wanted` that differ from `present`, without memory; a value that `wanted` lacks is
// never a difference.
ResourceValues Difference(const ResourceValues& wanted, const ResourceValues& present);

}  // namespace resmgr
