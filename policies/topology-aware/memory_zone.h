// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "policies/topology-aware/pool_tree.h"

namespace resmgr {

// The place of a container's memory: the nodes of these types in this pool, which has memory of its
// own. `types` are never more than the pool has.
struct MemoryZone {
  int pool = 0;
  MemoryTypes types = 0;

  friend bool operator==(const MemoryZone&, const MemoryZone&) = default;
};

// An amount of memory in huge pages of this size.
struct HugeMemory {
  Bytes page{};
  Bytes amount{};

  friend bool operator==(const HugeMemory&, const HugeMemory&) = default;
};
using HugeMemories = std::vector<HugeMemory>;  // one for each page size

// How much of one kind of memory (ordinary pages, or huge pages of one size) is granted, by zone.
// Thread-compatible.
class ZoneUse {
 public:
  // The tree must outlive it.
  explicit ZoneUse(const PoolTree& tree);

  void Add(const MemoryZone& zone, int64_t size);

  // Granted in exactly this zone.
  int64_t Own(const MemoryZone& zone) const { return own_[IndexOf(zone.pool)][zone.types]; }
  // Granted in all zones that share nodes with this one.
  int64_t Used(const MemoryZone& zone) const { return used_[IndexOf(zone.pool)][zone.types]; }
  // Memory granted in this pool and all below, of any type.
  int64_t Within(int pool) const;

 private:
  using ByTypes = std::array<int64_t, kMemoryTypeSets>;

  void AddUsed(int pool, MemoryTypes types, int64_t size);

  const PoolTree& tree_;
  std::vector<ByTypes> own_;     // by pool
  std::vector<ByTypes> within_;  // likewise, with all pools below
  std::vector<ByTypes> used_;    // by zone
};

}  // namespace resmgr
