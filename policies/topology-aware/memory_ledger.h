// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "policies/topology-aware/pool_tree.h"

namespace resmgr {

// The memory nodes where a container's memory may be: those of these types in this pool, which must
// have memory of its own. `types` has only types that the pool has.
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

// How much memory of one kind (ordinary pages, or huge pages of one size) is granted in each zone.
// Thread-compatible.
class ZoneUse {
 public:
  // The tree must outlive it.
  explicit ZoneUse(const PoolTree& tree);

  void Add(const MemoryZone& zone, int64_t size);

  // The memory granted in exactly this zone.
  int64_t Own(const MemoryZone& zone) const { return own_[IndexOf(zone.pool)][zone.types]; }
  // The memory granted in all zones that share nodes with this one.
  int64_t Used(const MemoryZone& zone) const { return used_[IndexOf(zone.pool)][zone.types]; }
  // Memory granted in this pool and all below, of any type.
  int64_t Within(int pool) const;

 private:
  using ByTypes = std::array<int64_t, kMemoryTypeSets>;

  void AddUsed(int pool, MemoryTypes types, int64_t size);

  const PoolTree& tree_;
  std::vector<ByTypes> own_;     // by pool
  std::vector<ByTypes> within_;  // by pool, with all pools below
  std::vector<ByTypes> used_;    // by zone
};

// The granted memory of each zone. The kernel does not report whose memory is on which node of a
// zone, so a grant counts in full wherever it may be: the grants in a zone are safe if all memory
// that may use any of its nodes fits into the zone. Huge pages are counted by size, apart from the
// ordinary memory, by the same rule. Thread-compatible.
class MemoryLedger {
 public:
  // The tree must outlive it.
  explicit MemoryLedger(const PoolTree& tree);

  // The zone of a pool: its own or, if it has no memory of these types, that of the nearest
  // ancestor; nullopt if the machine has no such memory.
  std::optional<MemoryZone> ZoneAt(int pool, MemoryTypes types) const;
  // The next larger zone, which has more nodes; nullopt if there is none.
  std::optional<MemoryZone> Larger(const MemoryZone& zone, MemoryTypes types) const;
  // The smallest zone at the pool or above with room for this size.
  std::optional<MemoryZone> Find(int pool, MemoryTypes types, Bytes size,
                                 const HugeMemories& huge = {}) const;
  // A size of zero fits into any zone. A zero amount of huge pages fits, too, also if the machine
  // has no pages of that size.
  bool HasRoom(const MemoryZone& zone, Bytes size, const HugeMemories& huge) const;

  void Give(const MemoryZone& zone, Bytes size, const HugeMemories& huge = {}) {
    Add(zone, size, huge, 1);
  }
  void Take(const MemoryZone& zone, Bytes size, const HugeMemories& huge = {}) {
    Add(zone, size, huge, -1);
  }

  const NodeSet& Nodes(const MemoryZone& zone) const;
  Bytes Capacity(const MemoryZone& zone) const;
  // All granted memory that may lie on nodes of the zone. Used, Free and Within leave out huge
  // pages.
  Bytes Used(const MemoryZone& zone) const { return Bytes{use_.Used(zone)}; }
  Bytes Free(const MemoryZone& zone) const { return Capacity(zone) - Used(zone); }
  // Memory used by this pool and all below, of any type.
  Bytes Within(int pool) const { return Bytes{use_.Within(pool)}; }
  // Free memory in huge pages of this size; 0 if the machine has none.
  Bytes FreeHuge(const MemoryZone& zone, Bytes page) const;
  // Zones whose grants are not safe, for lack of memory of any kind.
  std::vector<MemoryZone> Overfull() const;
  // Whether a grant of this size, already counted in this zone, is not safe there.
  bool IsUnsafe(const MemoryZone& zone, Bytes size, const HugeMemories& huge) const;

 private:
  void Add(const MemoryZone& zone, Bytes size, const HugeMemories& huge, int sign);
  Bytes FreeHugeAt(const MemoryZone& zone, size_t index) const;

  const PoolTree& tree_;
  ZoneUse use_;
  std::vector<ZoneUse> huge_;  // by PoolTree::huge_page_sizes()
  // All zones that ever had grants, by pool and types.
  std::vector<MemoryZone> granted_;
};

}  // namespace resmgr
