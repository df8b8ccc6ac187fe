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

// PoolRule::kPacking for such a container, which takes so many exclusive CPUs, of pools that have
// room for it; 0 where it is not packed. The book must outlive it and not change meanwhile.
// Exclusive: the fewest CPUs that sharing containers would lose from around their memory,
// then the fewest that are left in the pool and those around it. Shared: the most CPUs that are not
// exclusive for what is asked of them, away from exclusive ones, for which it would have to move.
class Packer {
 public:
  Packer(const GrantBook& book, const Need& need, int count)
      : book_(book), need_(need), count_(count), packed_(IsPacked(book, need)) {}

  // Neighbours are best asked for one after the other: what they share is counted once.
  int64_t Score(int pool);

 private:
  int64_t ScoreExclusive(int pool);
  int64_t Lost(int pool);

  const GrantBook& book_;
  const Need& need_;
  const int count_;
  const bool packed_;
  int around_ = -1;  // the pool that `lost_` is of
  int64_t lost_ = 0;
};

// For so many of `from`, more than any part of the pool has: the parts to take them from, which are
// to be used up in this order. As few parts as possible, and of these those that fit tightest.
std::vector<CpuSet> FewestParts(const PoolTree& tree, const CpuSet& from, int pool, int count);

}  // namespace resmgr
