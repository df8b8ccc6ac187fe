// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "pkg/model/resources.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// The fields of LinuxContainerResources (CRI) that this daemon decides about. An empty value is one
// that is not set, or not known.
struct ResourceValues {
  std::optional<CpuSet> cpus{};   // cpuset_cpus; never empty when set
  std::optional<NodeSet> mems{};  // cpuset_mems; never empty when set
  std::optional<int64_t> cpu_shares{};
  std::optional<int64_t> cpu_quota{};   // microseconds per period; -1 lifts the limit
  std::optional<int64_t> cpu_period{};  // microseconds

  bool empty() const { return !cpus && !mems && !cpu_shares && !cpu_quota && !cpu_period; }
  friend bool operator==(const ResourceValues&, const ResourceValues&) = default;
};

// Numbers of a container that are in force in place of those that policy and request say: later
// stages set them, or the runtime's own plugins did. They never tell what the container asks for.
struct NumbersSetLater {
  std::optional<int64_t> cpu_shares{};
  std::optional<int64_t> cpu_quota{};
  std::optional<int64_t> cpu_period{};
  // The runtime has reported what is in force since it was last told something, and what differed
  // is in the numbers above: any further difference comes from another client of the runtime.
  bool reported = false;

  friend bool operator==(const NumbersSetLater&, const NumbersSetLater&) = default;
};

// The values as a runtime reads them; the other fields stay empty.
LinuxResources AsResources(const ResourceValues& values);

// The values in a message. A list that cannot be read counts as not known, an empty one as not set:
// so a runtime says that it does not restrict the container.
ResourceValues ReadValues(const LinuxResources& resources);

// The values of `wanted` that differ from `present`; what `wanted` leaves empty is never a
// difference.
ResourceValues Difference(const ResourceValues& wanted, const ResourceValues& present);

}  // namespace resmgr
