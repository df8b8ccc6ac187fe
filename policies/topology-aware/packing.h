// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "pkg/topology/cpu_set.h"
#include "policies/topology-aware/grant_book.h"
#include "policies/topology-aware/need.h"

namespace resmgr {

// The choice among pools that fit equally well by stronger rules. While the machine is mostly
// empty, containers are spread over pools, so that each has much of its caches and memory for
// itself; later they are packed, so that large holes are left for later containers.

// Whether a container with this need is packed now.
bool IsPacked(const GrantBook& book, const Need& need);

// Room in the pool up to the CPU limit of a container with this need, in milli-CPUs. Once
// containers are packed, hardly any pool has CPUs beyond the requests. Then all CPUs that are not
// exclusive count as room, so that pools with enough shared CPUs are equal, and no container leaves
// its memory for a little more room.
int64_t RoomForLimit(const GrantBook& book, const Need& need, int pool);

// Computes PoolRule::kPacking for a container that takes this number of exclusive CPUs, in pools
// with room for it; 0 if it is not packed. The book must outlive it and not change meanwhile.
// Exclusive: prefers the pool where the fewest CPUs are left, in it and in those around it; each
// sharing container that would leave its memory counts as some more. Shared: prefers the pool with
// the most CPUs around its memory that are not exclusive, since the container would have to move
// for further exclusive grants; the requests there count half, so that no place is full of sharing
// containers long before others.
class Packer {
 public:
  Packer(const GrantBook& book, const Need& need, int count)
      : book_(book), need_(need), count_(count), packed_(IsPacked(book, need)) {}

  // Asking for neighbouring pools in turn is cheapest, since their common part is computed once.
  int64_t Score(int pool);

 private:
  int64_t ScoreExclusive(int pool);
  // The pool that has the memory at these CPUs.
  int Around(int pool) const;
  // The number of sharing containers that would leave this pool for the grant if all had equal
  // requests. Containers that move within the pool of their memory do not count.
  int64_t Moved(int around);

  const GrantBook& book_;
  const Need& need_;
  const int count_;
  const bool packed_;
  int around_ = -1;  // the pool for which `moved_` was computed
  int64_t moved_ = 0;
};

// For a number of CPUs of `from` that no single part of the pool has: the parts to take them from,
// in this order. As few parts as possible, and among these choices the tightest.
std::vector<CpuSet> FewestParts(const PoolTree& tree, const CpuSet& from, int pool, int count);

}  // namespace resmgr
