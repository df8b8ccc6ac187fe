// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/memory_ledger.h"

#include <algorithm>
#include <tuple>

namespace resmgr {

MemoryLedger::MemoryLedger(const PoolTree& tree)
    : tree_(tree), own_(tree.size()), within_(tree.size()), used_(tree.size()) {}

std::optional<MemoryZone> MemoryLedger::ZoneAt(int pool, MemoryTypes types) const {
  for (int id = tree_.at(pool).memory_pool; id >= 0; id = tree_.at(id).parent) {
    const MemoryTypes here = tree_.at(id).memory_types & types;
    if (here != 0) return MemoryZone{id, here};
  }
  return std::nullopt;
}

std::optional<MemoryZone> MemoryLedger::Larger(const MemoryZone& zone, MemoryTypes types) const {
  for (int id = tree_.at(zone.pool).parent; id >= 0; id = tree_.at(id).parent) {
    const MemoryZone larger{id, tree_.at(id).memory_types & types};
    if (Nodes(larger) != Nodes(zone)) return larger;
  }
  return std::nullopt;
}

std::optional<MemoryZone> MemoryLedger::Find(int pool, MemoryTypes types, Bytes size) const {
  std::optional<MemoryZone> zone = ZoneAt(pool, types);
  while (zone && size > Free(*zone) && size.value > 0)
    zone = Larger(*zone, types);
  return zone;
}

const NodeSet& MemoryLedger::Nodes(const MemoryZone& zone) const {
  return tree_.at(zone.pool).nodes[zone.types];
}

Bytes MemoryLedger::Capacity(const MemoryZone& zone) const {
  return tree_.at(zone.pool).capacity[zone.types];
}

Bytes MemoryLedger::Within(int pool) const {
  int64_t sum = 0;
  for (const int64_t size : within_[IndexOf(pool)])
    sum += size;
  return Bytes{sum};
}

std::vector<MemoryZone> MemoryLedger::Overfull() const {
  std::vector<MemoryZone> overfull;
  for (const MemoryZone& zone : granted_) {
    if (own_[IndexOf(zone.pool)][zone.types] != 0 && Free(zone).value < 0) overfull.push_back(zone);
  }
  return overfull;
}

void MemoryLedger::Add(const MemoryZone& zone, int64_t size) {
  const auto order = [](const MemoryZone& one) { return std::tuple(one.pool, one.types); };
  const auto place = std::ranges::lower_bound(granted_, order(zone), {}, order);
  if (place == granted_.end() || *place != zone) granted_.insert(place, zone);
  own_[IndexOf(zone.pool)][zone.types] += size;
  for (int id = zone.pool; id >= 0; id = tree_.at(id).parent) {
    within_[IndexOf(id)][zone.types] += size;
    AddUsed(id, zone.types, size);
  }
  for (int id = tree_.FirstBelow(zone.pool); id < zone.pool; ++id)
    AddUsed(id, zone.types, size);
}

void MemoryLedger::AddUsed(int pool, MemoryTypes types, int64_t size) {
  ByTypes& used = used_[IndexOf(pool)];
  for (MemoryTypes asked = 1; asked < kMemoryTypeSets; ++asked) {
    if ((asked & types) != 0) used[asked] += size;
  }
}

}  // namespace resmgr
