// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <tuple>

#include "pkg/model/resource_values.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Where a container runs, decided by a policy. `cpus` has exclusive and shared ones together; a
// value that is not set stays as requested.
struct Placement : ResourceValues {
  // The part of `cpus` that no other container may use.
  CpuSet exclusive;
  // Where `mems` is not set: the memory nodes that its memory counts on, wherever it lies.
  NodeSet counted_mems;
  // The policy wants to be asked again (Policy::LookAgain) when the container has run for so long,
  // counted from its start. 0: it does not.
  std::chrono::milliseconds look_again_after{0};
  // Where `cpus` is not set: the policy before this one bound the container to some CPUs, and these
  // lift that. They are set by the resource manager; policies neither set them nor look at them.
  std::optional<CpuSet> lifted_to;

  std::string
      pool;  // where in the policy's pools: "shared", "reserved", "exclusive", "NUMA node #1"
  std::string reason;  // the rule that decided, for explain

  const ResourceValues& values() const { return *this; }
  // The CPUs that the runtime is to enforce.
  const std::optional<CpuSet>& EnforcedCpus() const { return cpus ? cpus : lifted_to; }
  // Whether all values that a policy decides are equal.
  bool SameDecision(const Placement& other) const {
    const auto decided = [](const Placement& placement) {
      return std::tie(placement.values(), placement.exclusive, placement.counted_mems,
                      placement.look_again_after, placement.pool, placement.reason);
    };
    return decided(*this) == decided(other);
  }
};

}  // namespace resmgr
