// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Where a container runs, decided by a policy. What is empty is left as the request said.
struct Placement {
  // CPUs of the container, exclusive and shared ones together; never empty when set.
  std::optional<CpuSet> cpus;
  // Memory nodes; never empty when set.
  std::optional<NodeSet> mems;
  // `mems` holds until the container has run for so long; then Policy::EndColdStart has the rest.
  // 0: until something changes.
  std::chrono::milliseconds cold_start{0};
  // Where `cpus` is empty: the policy before this one bound the container to some, and these are to
  // lift that. They bind nobody and count for nothing: no policy looks at them.
  std::optional<CpuSet> lifted_to;
  // The part of `cpus` that no other container may use.
  CpuSet exclusive;
  std::optional<int64_t> cpu_shares;
  std::optional<int64_t> cpu_quota;   // microseconds per period; -1 lifts the limit
  std::optional<int64_t> cpu_period;  // microseconds

  std::string
      pool;  // where in the policy's pools: "shared", "reserved", "exclusive", "NUMA node #1"
  std::string reason;  // the rule that decided, for explain

  // The same effect on the runtime at this moment (pool and reason do not count).
  bool SameEffect(const Placement& other) const {
    return cpus == other.cpus && mems == other.mems && cpu_shares == other.cpu_shares &&
           cpu_quota == other.cpu_quota && cpu_period == other.cpu_period;
  }
};

}  // namespace resmgr
