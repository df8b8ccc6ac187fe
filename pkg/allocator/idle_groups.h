// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Picks `count` CPUs of `available` that are near to each other, and leaves large groups whole for
// others. It narrows the search from packages over dies, NUMA nodes and L3 groups:
//   1. it takes whole idle groups (all their online CPUs are available) that are not larger than
//      the remaining need, the lowest first;
//   2. if one group has room for all the rest, it continues inside that: one with CPUs that are
//      picked already first, then the one with the fewest available CPUs, the lowest among equals.
// Then it takes whole idle cores, from the L3 groups and NUMA nodes with the most of them, and
// single threads, from partly used cores and beside CPUs already picked.
//
// `preferred` are sets in the order of preference: as many CPUs as possible come from the first,
// then from the second, ..., each part chosen as above. Deterministic. Errors are those of
// AllocateCpus (cpu_allocator.h).
StatusOr<CpuSet> TakeIdleGroups(const Machine& machine, const CpuSet& available, int count,
                                std::span<const CpuSet> preferred = {});

}  // namespace resmgr
