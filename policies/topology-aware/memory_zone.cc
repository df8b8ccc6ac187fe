// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/memory_zone.h"

namespace resmgr {

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
