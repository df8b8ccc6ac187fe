// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/memory_ledger.h"

#include <algorithm>
#include <tuple>

namespace resmgr {

MemoryLedger::MemoryLedger(const PoolTree& tree)
    : tree_(tree), use_(tree), huge_(tree.huge_page_sizes().size(), ZoneUse(tree)) {}

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

std::optional<MemoryZone> MemoryLedger::Find(int pool, MemoryTypes types, Bytes size,
                                             const HugeMemories& huge) const {
  std::optional<MemoryZone> zone = ZoneAt(pool, types);
  while (zone && !HasRoom(*zone, size, huge))
    zone = Larger(*zone, types);
  return zone;
}

bool MemoryLedger::HasRoom(const MemoryZone& zone, Bytes size, const HugeMemories& huge) const {
  if (size.value > 0 && size > Free(zone)) return false;
  return std::ranges::all_of(
      huge, [&](const HugeMemory& one) { return one.amount <= FreeHuge(zone, one.page); });
}

const NodeSet& MemoryLedger::Nodes(const MemoryZone& zone) const {
  return tree_.at(zone.pool).nodes[zone.types];
}

Bytes MemoryLedger::Capacity(const MemoryZone& zone) const {
  return tree_.at(zone.pool).capacity[zone.types];
}

Bytes MemoryLedger::FreeHuge(const MemoryZone& zone, Bytes page) const {
  const std::optional<size_t> index = tree_.IndexOfPages(page);
  return index ? FreeHugeAt(zone, *index) : Bytes{};
}

Bytes MemoryLedger::FreeHugeAt(const MemoryZone& zone, size_t index) const {
  const Bytes capacity = tree_.at(zone.pool).huge_capacity[index][zone.types];
  return capacity - Bytes{huge_[index].Used(zone)};
}

std::vector<MemoryZone> MemoryLedger::Overfull() const {
  std::vector<MemoryZone> overfull;
  for (const MemoryZone& zone : granted_) {
    bool full = use_.Own(zone) != 0 && Free(zone).value < 0;
    for (size_t i = 0; i < huge_.size() && !full; ++i)
      full = huge_[i].Own(zone) != 0 && FreeHugeAt(zone, i).value < 0;
    if (full) overfull.push_back(zone);
  }
  return overfull;
}

bool MemoryLedger::IsUnsafe(const MemoryZone& zone, Bytes size, const HugeMemories& huge) const {
  if (size.value != 0 && Free(zone).value < 0) return true;
  return std::ranges::any_of(
      huge, [&](const HugeMemory& one) { return FreeHuge(zone, one.page).value < 0; });
}

void MemoryLedger::Add(const MemoryZone& zone, Bytes size, const HugeMemories& huge, int sign) {
  const auto order = [](const MemoryZone& one) { return std::tuple(one.pool, one.types); };
  const auto place = std::ranges::lower_bound(granted_, order(zone), {}, order);
  if (place == granted_.end() || *place != zone) granted_.insert(place, zone);
  use_.Add(zone, sign * size.value);
  for (const HugeMemory& one : huge) {
    const std::optional<size_t> index = tree_.IndexOfPages(one.page);
    if (index) huge_[*index].Add(zone, sign * one.amount.value);
  }
}

ZoneUse::ZoneUse(const PoolTree& tree)
    : tree_(tree), own_(tree.size()), within_(tree.size()), used_(tree.size()) {}

void ZoneUse::Add(const MemoryZone& zone, int64_t size) {
  own_[IndexOf(zone.pool)][zone.types] += size;
  for (int id = zone.pool; id >= 0; id = tree_.at(id).parent) {
    within_[IndexOf(id)][zone.types] += size;
    AddUsed(id, zone.types, size);
  }
  for (int id = tree_.FirstBelow(zone.pool); id < zone.pool; ++id)
    AddUsed(id, zone.types, size);
}

int64_t ZoneUse::Within(int pool) const {
  int64_t sum = 0;
  for (const int64_t size : within_[IndexOf(pool)])
    sum += size;
  return sum;
}

void ZoneUse::AddUsed(int pool, MemoryTypes types, int64_t size) {
  ByTypes& used = used_[IndexOf(pool)];
  for (MemoryTypes asked = 1; asked < kMemoryTypeSets; ++asked) {
    if ((asked & types) != 0) used[asked] += size;
  }
}

}  // namespace resmgr
