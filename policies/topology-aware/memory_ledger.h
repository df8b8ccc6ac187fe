// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "policies/topology-aware/pool_tree.h"

namespace resmgr {

// Where a container may have its memory: nodes of these types in this pool, which is one with
// memory of its own. `types` are never more than the pool has.
struct MemoryZone {
  int pool = 0;
  MemoryTypes types = 0;

  friend bool operator==(const MemoryZone&, const MemoryZone&) = default;
};

// How much of each zone is granted. The kernel does not tell whose memory lies on which node of a
// zone, so a grant counts in full wherever it may lie: what is granted in a zone is safe there when
// all that may use any of its nodes fits into it. Thread-compatible.
class MemoryLedger {
 public:
  // The tree must outlive it.
  explicit MemoryLedger(const PoolTree& tree);

  // The zone of a pool: its own or, where it has no such memory, that of the nearest ancestor;
  // nullopt when the machine has no such memory.
  std::optional<MemoryZone> ZoneAt(int pool, MemoryTypes types) const;
  // The next larger one with more nodes; nullopt when there is none.
  std::optional<MemoryZone> Larger(const MemoryZone& zone, MemoryTypes types) const;
  // The smallest zone at the pool or above with room for so much more.
  std::optional<MemoryZone> Find(int pool, MemoryTypes types, Bytes size) const;

  void Give(const MemoryZone& zone, Bytes size) { Add(zone, size.value); }
  void Take(const MemoryZone& zone, Bytes size) { Add(zone, -size.value); }

  const NodeSet& Nodes(const MemoryZone& zone) const;
  Bytes Capacity(const MemoryZone& zone) const;
  // Everything that may lie on nodes of it.
  Bytes Used(const MemoryZone& zone) const { return Bytes{used_[IndexOf(zone.pool)][zone.types]}; }
  Bytes Free(const MemoryZone& zone) const { return Capacity(zone) - Used(zone); }
  // Of exactly this pool and all below, whatever the types.
  Bytes Within(int pool) const;
  // Zones with grants that are not safe there.
  std::vector<MemoryZone> Overfull() const;

 private:
  using ByTypes = std::array<int64_t, kMemoryTypeSets>;

  void Add(const MemoryZone& zone, int64_t size);
  void AddUsed(int pool, MemoryTypes types, int64_t size);

  const PoolTree& tree_;
  std::vector<ByTypes> own_;     // of grants in exactly this zone, by pool
  std::vector<ByTypes> within_;  // likewise, with all pools below
  std::vector<ByTypes> used_;    // by zone: of grants in zones that share nodes with it
  // All zones that ever had grants, by pool and types.
  std::vector<MemoryZone> granted_;
};

}  // namespace resmgr
