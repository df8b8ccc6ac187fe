// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Picks `count` CPUs of `available` so that they are near to each other and leave large groups
// whole for others. Step by step from packages over dies, NUMA nodes and L3 groups down:
//   1. whole groups that are idle (all their online CPUs are available) and not larger than what is
//      still needed, the lowest first;
//   2. where one group has room for all the rest, the search goes on inside it: one with CPUs that
//      are picked already before others, then the one with the fewest available CPUs, the lowest
//      among equals.
// Then whole idle cores, from the L3 groups and NUMA nodes with the most of them, and single
// threads, from cores that are in use already and beside CPUs already picked.
//
// `preferred` are sets in the order of preference: as many CPUs as possible come from the first,
// then from the second, ..., each part chosen as above. Deterministic. Errors are those of
// AllocateCpus (cpu_allocator.h).
StatusOr<CpuSet> TakeIdleGroups(const Machine& machine, const CpuSet& available, int count,
                                std::span<const CpuSet> preferred = {});

}  // namespace resmgr
