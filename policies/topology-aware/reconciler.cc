// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/reconciler.h"

#include <utility>

#include "pkg/allocator/idle_groups.h"

namespace resmgr {

bool SamePlacement(const Placement& a, const Placement& b) {
  return a.SameEffect(b) && a.exclusive == b.exclusive && a.pool == b.pool && a.reason == b.reason;
}

Reconciler::Reconciler(GrantBook& book, const Placer& placer)
    : book_(book), placer_(placer), former_(book.grants()) {
  book_.Clear();
}

void Reconciler::Add(const Pod& pod, const Container& container, Wish wish) {
  entries_.push_back({&pod, &container, std::move(wish)});
}

Plan Reconciler::Run(const std::function<Wish(const Pod&, const Container&)>& wish_again) {
  CpuSet used;
  CpuSet crowded;
  for (const Entry& entry : entries_) {
    const CpuSet cpus = entry.container->placement.cpus.value_or(CpuSet());
    crowded |= used & cpus;
    used |= cpus;
  }
  for (const bool exclusive : {true, false}) {
    for (Entry& entry : entries_)
      AdoptKnown(entry, exclusive);
  }
  for (const bool exclusive : {true, false}) {
    for (Entry& entry : entries_)
      AdoptFound(entry, exclusive, crowded);
  }
  MoveFromEmptyPools();
  for (Entry& entry : entries_) {
    if (!entry.placed) PlaceAnew(entry, wish_again(*entry.pod, *entry.container));
  }
  book_.WidenMemory();
  Plan plan;
  for (const Entry& entry : entries_) {
    Placement placement = book_.PlacementOf(*book_.Find(entry.container->key));
    if (SamePlacement(placement, entry.container->placement)) continue;
    plan.changes.push_back({entry.container->key, std::move(placement)});
  }
  return plan;
}

void Reconciler::AdoptKnown(Entry& entry, bool exclusive) {
  const Placement& present = entry.container->placement;
  if (entry.placed || present.exclusive.empty() == exclusive) return;
  if (present.pool == kReservedPool || entry.wish.need.cpu_class == CpuClass::kPreserved) {
    if (!present.pool.empty()) AdoptUnpooled(entry, present.reason);
    return;
  }
  const int pool = book_.tree().Find(present.pool);
  if (pool >= 0) Adopt(entry, pool, WithHidden(entry, present.exclusive), present.reason);
}

void Reconciler::AdoptFound(Entry& entry, bool exclusive, const CpuSet& crowded) {
  const CpuClass cpu_class = entry.wish.need.cpu_class;
  const CpuSet cpus = entry.container->placement.cpus.value_or(CpuSet());
  if (entry.placed || cpus.empty() || exclusive != (cpu_class == CpuClass::kExclusive)) return;
  const int pool = book_.tree().SmallestWith(cpus);
  const std::string reason = fmt::format("{}: where it was found", entry.wish.need.why);
  if (cpu_class == CpuClass::kReserved && cpus.IsSubsetOf(book_.reserved())) {
    AdoptUnpooled(entry, reason);
  } else if (cpu_class == CpuClass::kExclusive) {
    const CpuSet own = WithHidden(entry, OwnCpus(entry, crowded));
    if (!own.empty()) Adopt(entry, pool, own, reason);
  } else if (cpu_class == CpuClass::kShared &&
             cpus.IsSubsetOf(book_.tree().at(book_.tree().root()).sharable)) {
    Adopt(entry, pool, {}, reason);
  }
}

// Which of the CPUs that a container was found on are exclusive, by what it is entitled to; empty
// when that cannot be.
CpuSet Reconciler::OwnCpus(const Entry& entry, const CpuSet& crowded) const {
  const Placement& present = entry.container->placement;
  const Need& need = entry.wish.need;
  if (!present.exclusive.empty()) return present.exclusive;
  const CpuSet alone = *present.cpus - crowded;
  if (need.fraction == 0) return alone == *present.cpus ? alone : CpuSet();
  const CpuSet isolated = alone & book_.machine().isolated();
  const CpuSet& from = need.isolated && isolated.size() >= need.full ? isolated : alone;
  return TakeIdleGroups(book_.machine(), from, need.full).value_or(CpuSet());
}

CpuSet Reconciler::WithHidden(const Entry& entry, const CpuSet& visible) const {
  if (!entry.wish.need.hide_hyperthreads) return visible;
  return book_.machine().WithSiblings(visible);
}

bool Reconciler::Grantable(const CpuSet& cpus) const {
  const Pool& root = book_.tree().at(book_.tree().root());
  return cpus.IsSubsetOf((root.sharable | root.isolated) - book_.cpus().exclusive()) &&
         book_.cpus().CanSpare(cpus);
}

bool Reconciler::Adopt(Entry& entry, int pool, const CpuSet& exclusive, std::string reason) {
  Grant grant;
  grant.need = entry.wish.need;
  grant.pool = pool;
  grant.reason = std::move(reason);
  if (exclusive.empty()) {
    // It may be entitled to CPUs of its own and have found none.
    grant.need.fraction += int64_t{1000} * grant.need.full;
    grant.need.full = 0;
    grant.need.cpu_class = CpuClass::kShared;
    grant.need.lift_quota = false;
  } else {
    grant.exclusive = exclusive;
    const bool fits = grant.need.cpu_class == CpuClass::kExclusive &&
                      exclusive.size() == placer_.ExclusiveCount(grant.need);
    const bool inside = exclusive.IsSubsetOf(book_.tree().at(pool).cpus);
    if (!fits || !inside || !Grantable(exclusive)) return false;
  }
  if (grant.need.Shares() && book_.cpus().SharedCpus(pool) == 0) return false;
  AdoptMemory(grant, entry.container->placement);
  const auto former = former_.find(entry.container->key);
  if (former != former_.end() && former->second.pool == pool) {
    grant.candidates = std::move(former->second.candidates);
  }
  book_.Give(entry.container->key, std::move(grant));
  entry.placed = true;
  return true;
}

bool Reconciler::AdoptUnpooled(Entry& entry, const std::string& reason) {
  const CpuClass cpu_class = entry.wish.need.cpu_class;
  if (cpu_class != CpuClass::kReserved && cpu_class != CpuClass::kPreserved) return false;
  Grant grant;
  grant.need = entry.wish.need;
  grant.pool = cpu_class == CpuClass::kReserved ? book_.reserved_pool() : book_.tree().root();
  grant.reason = reason;
  AdoptMemory(grant, entry.container->placement);
  book_.Give(entry.container->key, std::move(grant));
  entry.placed = true;
  return true;
}

// The zone that it has, if its pool leads there; else the smallest with room.
void Reconciler::AdoptMemory(Grant& grant, const Placement& present) const {
  const MemoryLedger& memory = book_.memory();
  for (const MemoryTypes types : {grant.need.memory_types, kAllMemoryTypes}) {
    grant.types = types;
    if (!present.mems) continue;
    for (grant.zone = memory.ZoneAt(grant.pool, types); grant.zone;
         grant.zone = memory.Larger(*grant.zone, types)) {
      if (memory.Nodes(*grant.zone) == *present.mems) return;
    }
  }
  placer_.FindMemory(grant);
}

void Reconciler::PlaceAnew(Entry& entry, const Wish& wish) {
  Wish preferring = wish;
  preferring.preferred = {entry.container->placement.exclusive};
  StatusOr<Grant> grant = placer_.Place(preferring);
  book_.Give(entry.container->key,
             grant.ok() ? *std::move(grant)
                        : placer_.PlaceShared(wish, fmt::format("shared for want of room: {}",
                                                                Message(grant.status()))));
}

// Exclusive CPUs of containers adopted later may have taken the last one of a pool.
void Reconciler::MoveFromEmptyPools() {
  for (const Entry& entry : entries_) {
    const Grant* const grant = book_.Find(entry.container->key);
    if (grant == nullptr || !grant->need.Shares()) continue;
    int pool = grant->pool;
    while (book_.cpus().SharedCpus(pool) == 0 && book_.tree().at(pool).parent >= 0)
      pool = book_.tree().at(pool).parent;
    if (pool == grant->pool) continue;
    Grant moved = *book_.Take(entry.container->key);
    moved.pool = pool;
    moved.reason = "its pool has no CPU left to share";
    book_.Give(entry.container->key, std::move(moved));
  }
}

}  // namespace resmgr
