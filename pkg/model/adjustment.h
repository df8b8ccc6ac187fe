// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "pkg/model/placement.h"
#include "pkg/model/resources.h"

namespace resmgr {

// What is to be changed in a request before it goes to the runtime: only the fields that are set.
// Values are those of LinuxContainerResources in the CRI.
struct Adjustment {
  std::optional<CpuSet> cpus{};   // cpuset_cpus
  std::optional<NodeSet> mems{};  // cpuset_mems
  std::optional<int64_t> cpu_shares{};
  std::optional<int64_t> cpu_quota{};
  std::optional<int64_t> cpu_period{};

  bool empty() const { return !cpus && !mems && !cpu_shares && !cpu_quota && !cpu_period; }
  friend bool operator==(const Adjustment&, const Adjustment&) = default;
};

// The placement's effect as fields of a request.
Adjustment ToAdjustment(const Placement& placement);

// The adjustment alone, as a runtime reads it.
LinuxResources AsResources(const Adjustment& adjustment);

}  // namespace resmgr
