// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "pkg/model/placement.h"
#include "pkg/model/resources.h"

namespace resmgr {

// Values of one LinuxContainerResources (CRI) that this daemon sets, in a request or at the
// runtime: only the fields that are set count.
struct ResourceValues {
  std::optional<CpuSet> cpus{};   // cpuset_cpus
  std::optional<NodeSet> mems{};  // cpuset_mems
  std::optional<int64_t> cpu_shares{};
  std::optional<int64_t> cpu_quota{};
  std::optional<int64_t> cpu_period{};

  bool empty() const { return !cpus && !mems && !cpu_shares && !cpu_quota && !cpu_period; }
  friend bool operator==(const ResourceValues&, const ResourceValues&) = default;
};

// The placement's effect as fields of a request.
ResourceValues ToResourceValues(const Placement& placement);

// The values alone, as a runtime reads them.
LinuxResources AsResources(const ResourceValues& values);

}  // namespace resmgr
