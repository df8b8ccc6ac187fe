// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "pkg/topology/cpu_set.h"
#include "policies/topology-aware/grant_book.h"
#include "policies/topology-aware/need.h"

namespace resmgr {

// How places are chosen where they fit equally well by stronger rules: spread over pools while the
// machine is mostly empty, so that each container has much of its caches and memory for itself;
// packed later, so that large holes are left for the containers to come.

// Whether such a container is packed now.
bool IsPacked(const GrantBook& book, const Need& need);

// PoolRule::kPacking of a pool that has the `count` exclusive CPUs of a need that is packed.
// Exclusive: the fewest CPUs that sharing containers would lose from around their memory,
// then the fewest that are left in the pool and those around it. Shared: the most CPUs that are not
// exclusive for what is asked of them, away from exclusive ones, for which it would have to move.
int64_t PackingScore(const GrantBook& book, const Need& need, int count, int pool);

// For so many of `from`, more than any part of the pool has: the parts to take them from, which are
// to be used up in this order. As few parts as possible, and of these those that fit tightest.
std::vector<CpuSet> FewestParts(const PoolTree& tree, const CpuSet& from, int pool, int count);

}  // namespace resmgr
