// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/reconciler.h"

#include <algorithm>
#include <array>
#include <utility>

#include "pkg/allocator/cpu_allocator.h"
#include "pkg/allocator/want_of_room.h"
#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/policy/conventions.h"
#include "pkg/topology/cpu_users.h"

namespace resmgr {

Reconciler::Reconciler(GrantBook& book, const Placer& placer)
    : book_(book), placer_(placer), former_(book.grants()) {
  book_.Clear();
}

void Reconciler::Add(const Pod& pod, const Container& container, Demand demand) {
  entries_.push_back({&pod, &container, std::move(demand)});
}

Plan Reconciler::Run(
    const std::function<void(const Pod&, const Container&, Demand&)>& add_affinities,
    const std::function<void(const Pod&, const Container&)>& placed) {
  CpuUsers users;
  CpuUsers running;
  for (const Entry& entry : entries_) {
    // Skips preserved containers: they are on the CPUs that the runtime gave them, and do not share
    // these by a decision.
    if (entry.demand.need.cpu_class == CpuClass::kPreserved) continue;
    if (entry.container->may_be_elsewhere) continue;
    const CpuSet cpus = entry.container->placement.cpus.value_or(CpuSet());
    users.Add(cpus);
    if (entry.container->state == ContainerState::kRunning) running.Add(cpus);
  }
  missing_ = MissingOfSharers();
  const CpuSet& crowded = users.several;
  const std::vector<Entry*> owners = WholeFirst();
  for (Entry* const entry : owners)
    AdoptKnown(*entry, true);
  // Sole users of their CPUs come first: on the exclusive CPUs of another container there may be
  // users that have not left yet, and that container does not run before they have. Sharers come
  // last: they may request more than there is, and nothing could be granted after them.
  const auto used_by_others = [&](const Entry& entry, bool sole_user) {
    // A container that may be elsewhere does not count as a user of any CPU.
    const bool elsewhere = entry.container->may_be_elsewhere;
    if (sole_user) return elsewhere ? users.any : crowded;
    if (entry.container->state != ContainerState::kRunning) return CpuSet();
    return elsewhere ? running.any : running.several;
  };
  for (const bool sole_user : {true, false}) {
    for (Entry* const entry : owners) {
      if (!entry->container->placement.pool.empty()) continue;
      AdoptFound(*entry, true, used_by_others(*entry, sole_user));
    }
  }
  for (Entry& entry : entries_)
    AdoptKnown(entry, false);
  for (const bool sole_user : {true, false}) {
    for (Entry* const entry : owners)
      AdoptFound(*entry, true, used_by_others(*entry, sole_user));
  }
  for (Entry* const entry : owners)
    HoldOwn(*entry);
  for (Entry& entry : entries_)
    AdoptFound(entry, false, crowded);
  MoveFromEmptyPools();
  FindMissingMemory();
  CountEstimates();
  for (Entry& entry : entries_) {
    if (entry.placed) continue;
    add_affinities(*entry.pod, *entry.container, entry.demand);
    for (const ContainerKey key : PlaceAnew(entry)) {
      const auto changed = std::ranges::find(entries_, key, &Entry::Key);
      placed(*changed->pod, *changed->container);
    }
  }
  book_.WidenMemory();
  return Changes();
}

Plan Reconciler::Changes() const {
  Plan plan;
  for (const Entry& entry : entries_) {
    Placement placement = book_.PlacementOf(*book_.Find(entry.container->key));
    if (placement.SameDecision(entry.container->placement)) continue;
    plan.changes.push_back({entry.container->key, std::move(placement)});
  }
  return plan;
}

// Containers without a fraction come first: fractions need room among the shared CPUs, and would
// take exclusive CPUs from others.
std::vector<Reconciler::Entry*> Reconciler::WholeFirst() {
  std::vector<Entry*> order;
  order.reserve(entries_.size());
  for (const bool whole : {true, false}) {
    for (Entry& entry : entries_)
      if ((entry.demand.need.fraction == 0) == whole) order.push_back(&entry);
  }
  return order;
}

void Reconciler::AdoptKnown(Entry& entry, bool exclusive) {
  const Placement& present = entry.container->placement;
  if (entry.placed || present.exclusive.empty() == exclusive) return;
  const CpuClass cpu_class = entry.demand.need.cpu_class;
  // A container on the reserved CPUs that is in the root's pool is not entitled to them: it shares
  // them while the root lends them.
  const int root = book_.tree().root();
  const bool lent = book_.cpus().Lends(root) && present.pool == book_.tree().at(root).name;
  const bool reserved =
      cpu_class == CpuClass::kReserved && present.cpus == book_.reserved() && !lent;
  if (present.pool == kReservedPool || reserved || cpu_class == CpuClass::kPreserved) {
    if (!present.pool.empty()) AdoptUnpooled(entry, present.reason);
    return;
  }
  // A container that was not pinned, but is entitled to exclusive CPUs, did not get them: it is
  // placed anew.
  const bool unpinned = book_.pins_cpus() && !present.cpus.has_value();
  if (unpinned && cpu_class == CpuClass::kExclusive) return;
  const int pool = KnownPool(present);
  if (pool >= 0) Adopt(entry, pool, WithHidden(entry, present.exclusive), present.reason);
}

// The pool that the placement names. If its shared CPUs are not in that pool, the name is from
// before its last move, and the smallest pool with its present CPUs is returned. -1 if no pool has
// the name.
int Reconciler::KnownPool(const Placement& present) const {
  const PoolTree& tree = book_.tree();
  const int named = tree.Find(present.pool);
  if (named < 0 || !book_.pins_cpus() || !present.cpus) return named;
  const CpuSet shared = *present.cpus - present.exclusive;
  const bool elsewhere = !shared.IsSubsetOf(tree.at(named).cpus) && shared.IsSubsetOf(Sharable());
  return elsewhere ? tree.SmallestWith(*present.cpus) : named;
}

void Reconciler::AdoptFound(Entry& entry, bool exclusive, const CpuSet& crowded) {
  const CpuClass cpu_class = entry.demand.need.cpu_class;
  const CpuSet cpus = entry.container->placement.cpus.value_or(CpuSet());
  if (entry.placed) return;
  const std::string reason = fmt::format("{}: where it was found", entry.demand.need.why);
  const bool unpinned_reserved = cpu_class == CpuClass::kReserved && !book_.pins_cpus();
  if (cpu_class == CpuClass::kPreserved || unpinned_reserved) {
    if (!exclusive && entry.container->placement.mems) AdoptUnpooled(entry, entry.demand.need.why);
    return;
  }
  if (!book_.pins_cpus()) {
    const int pool = PoolOfMemory(entry);
    if (!exclusive && pool >= 0) Adopt(entry, pool, {}, reason);
    return;
  }
  if (cpus.empty()) return;
  const int pool = book_.tree().SmallestWith(cpus);
  if (exclusive) {
    if (cpu_class != CpuClass::kExclusive) return;
    const CpuSet own = WithHidden(entry, OwnCpus(entry, crowded));
    if (!own.empty()) Adopt(entry, pool, own, reason);
  } else if (cpu_class == CpuClass::kReserved && cpus.IsSubsetOf(book_.reserved())) {
    AdoptUnpooled(entry, reason);
  } else if (cpu_class == CpuClass::kExclusive) {
    if (!WasSharing(entry, pool)) return;
    const bool lent = book_.cpus().Lends(book_.tree().root()) && cpus == book_.reserved();
    Adopt(entry, lent ? book_.tree().root() : pool, {},
          fmt::format("{}when it was found", kWantOfRoom));
  } else if (cpus.IsSubsetOf(Sharable())) {
    Adopt(entry, pool, {}, reason);
  }
}

// The smallest pool with exactly the container's present memory nodes; -1 if there is none.
int Reconciler::PoolOfMemory(const Entry& entry) const {
  const MemoryLedger& memory = book_.memory();
  const std::optional<NodeSet>& mems = entry.container->placement.mems;
  if (!mems) return -1;
  for (const Pool& pool : book_.tree().pools()) {
    for (const MemoryTypes types : {entry.demand.need.memory_types, kAllMemoryTypes}) {
      const std::optional<MemoryZone> zone = memory.ZoneAt(pool.id, types);
      if (zone && memory.Nodes(*zone) == *mems) return pool.id;
    }
  }
  return -1;
}

const CpuSet& Reconciler::Sharable() const {
  return book_.tree().at(book_.tree().root()).sharable;
}

// Whether a container that is entitled to exclusive CPUs had none: it is on all CPUs that its pool
// shares, or on a sufficiently large part of the shared CPUs. If its placement names an unknown
// pool, it comes from another policy, which may not have granted exclusive CPUs.
bool Reconciler::WasSharing(const Entry& entry, int pool) const {
  const Placement& present = entry.container->placement;
  const CpuLedger& ledger = book_.cpus();
  if (!present.exclusive.empty() || present.reason == kWasToChange) return false;
  if (ledger.Lends(book_.tree().root()) && present.cpus == book_.reserved()) return true;
  if (!present.cpus->IsSubsetOf(Sharable())) return false;
  const bool whole_pool = ledger.CanShare(pool) && ledger.SharedSet(pool).IsSubsetOf(*present.cpus);
  if (whole_pool && present.pool.empty()) return true;
  return *present.cpus != Sharable() && present.cpus->size() >= entry.demand.need.full;
}

// The CPUs of pools on which the containers found sharing there do not run: other containers must
// have these CPUs exclusively.
CpuSet Reconciler::MissingOfSharers() const {
  CpuSet missing;
  for (const Entry& entry : entries_) {
    const CpuSet cpus = entry.container->placement.cpus.value_or(CpuSet());
    const bool found = !cpus.empty() && entry.container->placement.pool.empty();
    if (!found || !entry.demand.need.Shares() || cpus.IsSubsetOf(book_.reserved())) continue;
    missing |= book_.tree().at(book_.tree().SmallestWith(cpus)).sharable - cpus;
  }
  return missing;
}

// The exclusive ones among the CPUs that a container was found on, by its entitlement; empty if
// that is impossible.
CpuSet Reconciler::OwnCpus(const Entry& entry, const CpuSet& crowded) const {
  const Placement& present = entry.container->placement;
  const Need& need = entry.demand.need;
  if (!present.exclusive.empty()) return present.exclusive;
  const CpuSet alone = *present.cpus - crowded;
  if (need.fraction == 0) return alone == *present.cpus ? alone : CpuSet();
  // Shared sets are never empty: if the container has no more CPUs than exclusive ones, none of
  // them can be exclusive.
  if (present.cpus->size() <= need.full) return {};
  // Isolated CPUs are never shared, so as many as it may have are exclusive.
  const CpuSet isolated = alone & book_.machine().isolated();
  const bool own = need.isolated || isolated.size() <= need.full;
  // If sharing containers do not run on a CPU of their pool, that CPU is exclusive.
  const CpuSet certain = alone & missing_;
  const std::array<CpuSet, 2> first = {own ? isolated : CpuSet(), certain};
  const CpuSet from = placer_.PartInOnePlace(need, alone, first[0] | certain);
  return TakeIdleGroups(book_.machine(), from, need.full, first).value_or(CpuSet());
}

CpuSet Reconciler::WithHidden(const Entry& entry, const CpuSet& visible) const {
  if (!entry.demand.need.hide_hyperthreads) return visible;
  // Threads that are offline are not in the policy's CPUs.
  const CpuSet& available = book_.tree().at(book_.tree().root()).cpus;
  return visible | (book_.machine().WithSiblings(visible) & available);
}

bool Reconciler::Grantable(const CpuSet& cpus, bool decided) const {
  const CpuSet& isolated = book_.tree().at(book_.tree().root()).isolated;
  if (!cpus.IsSubsetOf((Sharable() | isolated) - book_.cpus().exclusive())) return false;
  return decided ? book_.cpus().CanKeep(cpus) : book_.cpus().CanSpare(cpus);
}

// Adapts the need to the kind of CPUs that the container has. Options may have changed since, by
// which a new container would get another kind.
void Reconciler::FitNeed(Need& need, const Entry& entry, bool exclusive) const {
  const MilliCpu request = entry.container->requirements.cpu_request;
  if (!exclusive) {
    need.cpu_class = CpuClass::kShared;
    need.fraction += int64_t{1000} * need.full;
    need.full = 0;
    need.lift_quota = false;
  } else if (need.cpu_class == CpuClass::kShared && entry.pod->qos == QosClass::kGuaranteed) {
    need.cpu_class = CpuClass::kExclusive;
    need.full = static_cast<int>(std::min<int64_t>(request.Whole(), CpuSet::kBits));
    need.fraction = request.Fraction();
    need.lift_quota = entry.container->placement.cpu_quota == kNoQuota;
  }
}

bool Reconciler::Adopt(Entry& entry, int pool, const CpuSet& exclusive, std::string reason) {
  Grant grant;
  grant.need = entry.demand.need;
  grant.pool = pool;
  grant.reason = std::move(reason);
  if (grant.need.memory_estimated) grant.need.memory = Bytes{};  // see CountEstimates
  FitNeed(grant.need, entry, !exclusive.empty());
  if (!exclusive.empty()) {
    grant.exclusive = exclusive;
    const int count = placer_.ExclusiveCount(grant.need);
    const bool decided_fewer = exclusive.size() < count && grant.reason.ends_with(kFewerCpus);
    const bool fits = grant.need.cpu_class == CpuClass::kExclusive && book_.pins_cpus() &&
                      (placer_.HasItsCount(grant.need, exclusive) || decided_fewer);
    const bool inside = exclusive.IsSubsetOf(book_.tree().at(pool).cpus);
    const CpuSet& had = entry.container->placement.exclusive;
    const bool decided = !had.empty() && WithHidden(entry, had) == exclusive;
    if (!fits || !inside || !Grantable(exclusive, decided)) return false;
  }
  if (grant.need.Shares() && !book_.cpus().CanShare(pool)) return false;
  entry.lacks_memory = !AdoptMemory(grant, entry.container->placement);
  const auto former = former_.find(entry.container->key);
  if (former != former_.end() && former->second.pool == pool) {
    grant.candidates = std::move(former->second.candidates);
  }
  book_.Give(entry.container->key, std::move(grant));
  entry.placed = true;
  return true;
}

bool Reconciler::AdoptUnpooled(Entry& entry, const std::string& reason) {
  const CpuClass cpu_class = entry.demand.need.cpu_class;
  if (cpu_class != CpuClass::kReserved && cpu_class != CpuClass::kPreserved) return false;
  Grant grant;
  grant.need = entry.demand.need;
  grant.pool = cpu_class == CpuClass::kReserved ? book_.reserved_pool() : book_.tree().root();
  grant.reason = reason;
  if (grant.need.memory_estimated) grant.need.memory = Bytes{};  // see CountEstimates
  entry.lacks_memory = !AdoptMemory(grant, entry.container->placement);
  book_.Give(entry.container->key, std::move(grant));
  entry.placed = true;
  return true;
}

// Finds the zone with its present memory nodes or, for a cold start, the zone whose PMEM these are.
// The zone of its pool, or one around it, is tried first, but the zone may be anywhere: a container
// can move to a larger pool without its memory, and a pool derived from CPUs alone may be wrong.
// False if there is no such zone. Huge pages of a found zone are counted later, see CountEstimates.
bool Reconciler::AdoptMemory(Grant& grant, const Placement& present) const {
  const MemoryLedger& memory = book_.memory();
  std::optional<NodeSet> nodes = present.mems;
  const bool counted = !present.counted_mems.empty();
  if (counted && (!grant.need.pin_memory || !nodes)) nodes = present.counted_mems;
  const auto is_zone = [&](const std::optional<MemoryZone>& zone) {
    if (!zone || !nodes) return false;
    grant.zone = zone;
    grant.counts_huge = grant.need.huge.empty();
    grant.cold = grant.need.cold_start.count() > 0 && grant.need.pin_memory &&
                 book_.ColdNodes(*zone) == *nodes;
    return grant.cold || memory.Nodes(*zone) == *nodes;
  };
  for (const MemoryTypes types : {grant.need.memory_types, kAllMemoryTypes}) {
    grant.types = types;
    for (std::optional<MemoryZone> zone = memory.ZoneAt(grant.pool, types); zone;
         zone = memory.Larger(*zone, types)) {
      if (is_zone(zone)) return true;
    }
    for (const Pool& pool : book_.tree().pools()) {
      if (is_zone(memory.ZoneAt(pool.id, types))) return true;
    }
  }
  grant.zone.reset();
  grant.cold = false;
  return false;
}

// Finds the smallest zone with room, preferably one in which no container with known memory has to
// move.
void Reconciler::FindMissingMemory() {
  const MemoryLedger& memory = book_.memory();
  for (const Entry& entry : entries_) {
    if (!entry.lacks_memory) continue;
    Grant grant = *book_.Take(entry.container->key);
    placer_.FindMemory(grant, grant.pool);
    const size_t overfull = memory.Overfull().size();
    const std::optional<MemoryZone> smallest = grant.zone;
    for (auto zone = smallest; zone; zone = memory.Larger(*zone, grant.types)) {
      grant.zone = zone;
      book_.Give(entry.container->key, grant);
      if (memory.Overfull().size() <= overfull) break;
      book_.Take(entry.container->key);
    }
    if (book_.Find(entry.container->key) != nullptr) continue;
    grant.zone = smallest;
    book_.Give(entry.container->key, std::move(grant));
  }
}

// Counts estimated needs, and huge pages of containers that have their memory, as far as no other
// container has to give way.
void Reconciler::CountEstimates() {
  for (const Entry& entry : entries_) {
    if (entry.placed && entry.demand.need.memory_estimated) {
      book_.CountMemory(entry.container->key, entry.demand.need.memory);
    }
  }
  book_.CountHuge();
}

// Holds the exclusive CPUs of a container that has not as many as it requests, until it is placed
// anew near them (KeepOwn): containers that are placed before it must not get them.
void Reconciler::HoldOwn(Entry& entry) {
  const Placement& present = entry.container->placement;
  if (entry.placed || entry.demand.need.cpu_class != CpuClass::kExclusive) return;
  const CpuSet own = WithHidden(entry, present.exclusive);
  if (own.empty() || !Grantable(own, /*decided=*/true)) return;
  std::optional<Grant> grant =
      placer_.KeepFewer(entry.demand.need, own, book_.tree().SmallestWith(own));
  if (!grant) return;
  if (grant->need.memory_estimated) grant->need.memory = Bytes{};  // see CountEstimates
  entry.lacks_memory = !AdoptMemory(*grant, present);
  entry.holds = true;
  book_.Give(entry.Key(), *std::move(grant));
}

// Returns the containers whose grants changed.
std::vector<ContainerKey> Reconciler::PlaceAnew(Entry& entry) {
  const Placement& present = entry.container->placement;
  Demand& demand = entry.demand;
  if (entry.holds) book_.Take(entry.Key());
  demand.preferred = {present.exclusive, present.cpus.value_or(CpuSet())};
  std::optional<Grant> grant = KeepOwn(entry);
  if (!grant) {
    StatusOr<Grant> placed = placer_.Place(demand);
    grant = placed.ok() ? *std::move(placed)
                        : placer_.PlaceShared(
                              demand, fmt::format("{}{}", kWantOfRoom, Message(placed.status())));
  }
  const CpuSet taken = grant->exclusive;
  book_.Give(entry.container->key, *std::move(grant));
  book_.CountHuge();
  entry.placed = true;
  std::vector<ContainerKey> changed = book_.MakeRoom(taken);
  changed.push_back(entry.container->key);
  return changed;
}

// For a container with exclusive CPUs, but not as many as it requests: more CPUs near to its own,
// or fewer of them; if there are no more, those that it has.
std::optional<Grant> Reconciler::KeepOwn(Entry& entry) const {
  const Placement& present = entry.container->placement;
  Demand& demand = entry.demand;
  const CpuSet own = WithHidden(entry, present.exclusive);
  const bool exclusive = demand.need.cpu_class == CpuClass::kExclusive;
  if (own.empty() || !exclusive || !Grantable(own, /*decided=*/true)) return std::nullopt;
  demand.held = own;
  demand.keeps_held = true;
  const int pool = book_.tree().SmallestWith(own);
  std::optional<Grant> grant = placer_.PlaceNear(demand, pool);
  if (grant || own.size() > placer_.ExclusiveCount(demand.need)) return grant;
  grant = placer_.KeepFewer(demand.need, own, pool);
  if (grant && !AdoptMemory(*grant, present)) placer_.FindMemory(*grant, grant->pool);
  return grant;
}

// Moves sharing containers out of pools without a CPU to share: containers adopted later may have
// got the last one exclusively.
void Reconciler::MoveFromEmptyPools() {
  for (const Entry& entry : entries_) {
    const Grant* const grant = book_.Find(entry.container->key);
    if (grant == nullptr || !grant->need.Shares()) continue;
    int pool = grant->pool;
    while (!book_.cpus().CanShare(pool) && book_.tree().at(pool).parent >= 0)
      pool = book_.tree().at(pool).parent;
    if (pool == grant->pool) continue;
    Grant moved = *book_.Take(entry.container->key);
    moved.pool = pool;
    moved.reason = "its pool has no CPU left to share";
    book_.Give(entry.container->key, std::move(moved));
  }
}

}  // namespace resmgr
