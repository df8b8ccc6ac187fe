// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "policies/topology-aware/memory_zone.h"
#include "policies/topology-aware/pool_tree.h"

namespace resmgr {

// The granted memory of each zone. The kernel does not report whose memory lies on which node of a
// zone, so a grant counts in full wherever it may lie: grants in a zone are safe if all memory that
// may use any of its nodes fits into it. Huge pages are counted by their sizes, beside the ordinary
// memory, and by the same rule. Thread-compatible.
class MemoryLedger {
 public:
  // The tree must outlive it.
  explicit MemoryLedger(const PoolTree& tree);

  // The zone of a pool: its own or, where it has no such memory, that of the nearest ancestor;
  // nullopt when the machine has no such memory.
  std::optional<MemoryZone> ZoneAt(int pool, MemoryTypes types) const;
  // The next larger one with more nodes; nullopt when there is none.
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
  // All granted memory that may lie on nodes of the zone. This and the following functions are
  // about ordinary memory.
  Bytes Used(const MemoryZone& zone) const { return Bytes{use_.Used(zone)}; }
  Bytes Free(const MemoryZone& zone) const { return Capacity(zone) - Used(zone); }
  // Memory used by this pool and all below, of any type.
  Bytes Within(int pool) const { return Bytes{use_.Within(pool)}; }
  // Free memory in huge pages of this size; 0 where the machine has none.
  Bytes FreeHuge(const MemoryZone& zone, Bytes page) const;
  // Zones with grants that are not safe there, for want of memory of any kind.
  std::vector<MemoryZone> Overfull() const;
  // Whether a grant of this size, which is counted in this zone, is not safe there.
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
