// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/exclusive_finder.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "pkg/allocator/cpu_allocator.h"
#include "policies/topology-aware/packing.h"

namespace resmgr {
namespace {

// Smaller is better. Fast CPUs are left to the containers that ask for them.
std::tuple<int, int> Rank(const Cpu& cpu, CpuPriority priority) {
  const bool normal = cpu.kind == CoreKind::kNormal;
  const bool fast = cpu.kind == CoreKind::kPerformance;
  switch (priority) {
    case CpuPriority::kHigh:
      return {fast ? 0 : normal ? 1 : 2, -cpu.speed};
    case CpuPriority::kLow:
      return {fast ? 2 : normal ? 1 : 0, cpu.speed};
    default:
      return {normal ? 0 : fast ? 1 : 2, cpu.speed};
  }
}

// CPUs by rank, the best first.
std::vector<CpuSet> InOrder(const Machine& machine, CpuPriority priority) {
  std::map<std::tuple<int, int>, CpuSet> by_rank;
  for (const Cpu& cpu : machine.cpus()) {
    if (cpu.online) by_rank[Rank(cpu, priority)].Add(cpu.id);
  }
  std::vector<CpuSet> sets;
  sets.reserve(by_rank.size());
  for (const auto& [rank, cpus] : by_rank)
    sets.push_back(cpus);
  return sets;
}

}  // namespace

ExclusiveFinder::ExclusiveFinder(const GrantBook& book)
    : book_(book),
      places_(book.machine()),
      cores_(book.cores()),
      high_(InOrder(book.machine(), CpuPriority::kHigh)),
      normal_(InOrder(book.machine(), CpuPriority::kNormal)),
      low_(InOrder(book.machine(), CpuPriority::kLow)) {}

int ExclusiveFinder::Count(const Need& need) const {
  if (!need.hide_hyperthreads) return need.full;
  const int threads = cores_.threads();
  return (need.full + threads - 1) / threads * threads;
}

bool ExclusiveFinder::Meets(const Need& need, const CpuSet& cpus) const {
  const int count = Count(need);
  if (!need.hide_hyperthreads) return cpus.size() == count;
  return cpus.size() >= count && cpus.size() < count + cores_.threads() &&
         cores_.Whole(cpus) == cpus;
}

bool ExclusiveFinder::HasShared(const Need& need, int pool) const {
  return book_.cpus().CanShare(pool) && book_.cpus().Room(pool) >= need.fraction;
}

ExclusiveFinder::Source ExclusiveFinder::FindSource(const Demand& demand, int pool) const {
  const Need& need = demand.need;
  const int count = Count(need);
  const bool inside = !demand.within || demand.held.IsSubsetOf(*demand.within);
  if (inside && CanKeep(demand, pool)) {
    if (count <= demand.held.size()) return Source::kHeld;
    if (FurtherIsolated(demand, pool)) return Source::kBesideHeld;
  }
  if (demand.keeps_held && count >= demand.held.size() && CanKeep(demand, book_.tree().root())) {
    return Source::kNone;
  }
  if (need.isolated && HasIsolated(demand, pool)) return Source::kIsolated;
  const int ordinary = Ordinary(demand, pool);
  if (ordinary >= count) return Source::kOrdinary;
  if (!demand.any_kind) return Source::kNone;
  const int isolated = UsableIsolated(demand, pool).size();
  return std::max(ordinary, 0) + isolated >= count ? Source::kAnyKind : Source::kNone;
}

bool ExclusiveFinder::HasIsolated(const Demand& demand, int pool) const {
  const Need& need = demand.need;
  const int isolated = UsableIsolated(demand, pool).size();
  return isolated >= Count(need) &&
         (need.fraction == 0 || HasShared(need, book_.tree().root()) || demand.any_kind);
}

// Whether the container can keep its held CPUs, or as many as it needs of them.
bool ExclusiveFinder::CanKeep(const Demand& demand, int pool) const {
  const CpuSet& held = demand.held;
  if (held.empty() || !held.IsSubsetOf(book_.tree().at(pool).cpus)) return false;
  if (demand.need.isolated_required && !held.IsSubsetOf(book_.tree().at(pool).isolated))
    return false;
  if (Usable(demand.need, held) != held) return false;
  // For a fraction, a shared CPU must be left beside the held ones.
  return demand.need.fraction == 0 || Count(demand.need) < held.size() ||
         !book_.cpus().SharedSet(book_.tree().root()).IsSubsetOf(held);
}

// How many of the CPUs that the container needs beside its held ones are isolated; nullopt if the
// pool lacks CPUs. CPUs of one kind are better than a mixture, since the kernel balances threads
// only over ordinary CPUs.
std::optional<int> ExclusiveFinder::FurtherIsolated(const Demand& demand, int pool) const {
  const Need& need = demand.need;
  const CpuLedger& cpus = book_.cpus();
  const int more = Count(need) - demand.held.size();
  const int held_isolated = demand.held.CountCommon(book_.tree().at(pool).isolated);
  const int held_ordinary = demand.held.size() - held_isolated;
  int isolated = 0;
  if (need.isolated || held_isolated > 0 || demand.any_kind) {
    isolated = std::min((UsableIsolated(demand, pool) - demand.held).size(), more);
  }
  const int64_t room = cpus.Room(book_.tree().root()) - int64_t{1000} * held_ordinary;
  const bool has_room = need.fraction == 0 || room >= need.fraction;
  const bool all_isolated = isolated == more && has_room;
  if (all_isolated && held_isolated > 0) return more;
  const int ordinary = Ordinary(demand, pool) - held_ordinary;
  if (ordinary >= more) return 0;
  if (all_isolated) return more;
  if (isolated < more && ordinary >= more - isolated) return isolated;
  // Isolated CPUs without room for the fraction are better than a refusal.
  if (demand.any_kind && isolated == more) return more;
  return std::nullopt;
}

// How many ordinary CPUs the container can have.
int ExclusiveFinder::Ordinary(const Demand& demand, int pool) const {
  const Need& need = demand.need;
  if (need.isolated_required) return 0;
  const int grantable = Grantable(demand, pool);
  if (!need.hide_hyperthreads || grantable == 0) return grantable;
  const CpuSet free = UsableOrdinary(demand, book_.cpus().Free(pool));
  const int whole = free.size();
  const int threads = cores_.threads();
  if (whole <= grantable) return whole / threads * threads;
  if (cores_.uniform()) return grantable / threads * threads;
  // If cores differ in size, the last core may have more threads than can be granted, but not if
  // only the largest cores are taken.
  const int largest = cores_.Whole(free, threads).size();
  return std::max(grantable - threads + 1, std::min(grantable, largest)) / threads * threads;
}

// The CPUs from which `count` ordinary ones (at most Ordinary(demand, pool)) are picked: the held
// ones and those that sharing containers can spare if these are enough, else all.
CpuSet ExclusiveFinder::OrdinaryCpus(const Demand& demand, int pool, int count) const {
  const Need& need = demand.need;
  const CpuLedger& cpus = book_.cpus();
  CpuSet free = UsableOrdinary(demand, cpus.Free(pool));
  if (need.hide_hyperthreads && !cores_.uniform()) {
    const int grantable = Grantable(demand, pool);
    const bool tight = free.size() > grantable && count > grantable - cores_.threads() + 1;
    if (tight) free = cores_.Whole(free, cores_.threads());
  }
  if (cpus.Sliceable(pool, need.fraction) < count) return free;
  std::vector<CpuSet> kept = PreferredCpus(demand);
  if (demand.within) kept.insert(kept.begin(), *demand.within);
  const CpuSet spare = UsableOrdinary(demand, cpus.Spare(pool, need.fraction, kept));
  return spare.size() < count ? free : spare | (demand.held & free);
}

// The CPUs that such a need can take.
CpuSet ExclusiveFinder::Usable(const Need& need, const CpuSet& cpus) const {
  return need.hide_hyperthreads ? cores_.Whole(cpus) : cpus;
}

CpuSet ExclusiveFinder::UsableOrdinary(const Demand& demand, const CpuSet& cpus) const {
  return Usable(demand.need, demand.within ? cpus & *demand.within : cpus);
}

CpuSet ExclusiveFinder::UsableIsolated(const Demand& demand, int pool) const {
  return UsableOrdinary(demand, book_.cpus().FreeIsolated(pool));
}

int ExclusiveFinder::Grantable(const Demand& demand, int pool) const {
  const int grantable = book_.cpus().Grantable(pool, demand.need.fraction);
  if (!demand.within) return grantable;
  return std::min(grantable, demand.within->CountCommon(book_.cpus().Free(pool)));
}

// The demand, restricted to the place of the pool that fits it best; nullopt if no place has room.
std::optional<Demand> ExclusiveFinder::Confined(const Demand& demand, int pool) const {
  if (Count(demand.need) <= demand.held.size() && CanKeep(demand, pool)) {
    Demand keeping = demand;
    keeping.held = PartInOnePlace(demand.need, demand.held);
    return keeping;
  }
  const CpuSet& cpus = book_.tree().at(pool).cpus;
  Demand confined = demand;
  const CpuSet* best = nullptr;
  std::pair<bool, int> best_rank;
  for (const AlignedPlace& place : places_.Of(demand.need.alignment)) {
    if (!place.cpus.Intersects(cpus)) continue;
    confined.within = place.cpus;
    if (FindSource(confined, pool) == Source::kNone) continue;
    const std::pair rank(!place.cpus.Intersects(demand.held),
                         place.cpus.CountCommon(book_.cpus().Free(pool)));
    if (best != nullptr && rank >= best_rank) continue;
    best = &place.cpus;
    best_rank = rank;
  }
  if (best == nullptr) return std::nullopt;
  confined.within = *best;
  return confined;
}

CpuSet ExclusiveFinder::PartInOnePlace(const Need& need, const CpuSet& cpus,
                                       const CpuSet& preferred) const {
  CpuSet best;
  std::pair<int, int> best_rank;
  for (const AlignedPlace& place : places_.Of(need.alignment)) {
    const CpuSet part = Usable(need, cpus & place.cpus);
    const std::pair rank(-part.CountCommon(preferred), part.size());
    if (part.size() < Count(need) || (!best.empty() && rank >= best_rank)) continue;
    best = part;
    best_rank = rank;
  }
  return best.empty() ? cpus : best;
}

int ExclusiveFinder::MostOf(const Need& need, const CpuSet& cpus) const {
  const Pool& root = book_.tree().at(book_.tree().root());
  CpuSet grantable = need.isolated_required ? CpuSet() : root.sharable;
  if (!need.isolated_never) grantable |= root.isolated;
  return Usable(need, grantable & cpus).size();
}

int ExclusiveFinder::FreeOf(const Demand& demand, const CpuSet& cpus) const {
  Demand confined = demand;
  confined.within = cpus;
  const int root = book_.tree().root();
  const int isolated = demand.need.isolated_never ? 0 : UsableIsolated(confined, root).size();
  return std::max(Ordinary(confined, root), 0) + isolated;
}

std::optional<CpuSet> ExclusiveFinder::Pick(const Demand& demand, int pool) const {
  if (demand.need.alignment == Alignment::kPrefer) return PickAny(demand, pool);
  const std::optional<Demand> confined = Confined(demand, pool);
  return confined ? PickAny(*confined, pool) : std::nullopt;
}

std::optional<CpuSet> ExclusiveFinder::PickAny(const Demand& demand, int pool) const {
  std::optional<CpuSet> picked = PickCpus(demand, pool);
  if (picked && demand.need.hide_hyperthreads) picked = InWholeCores(demand, *picked);
  if (picked && !Meets(demand.need, *picked)) return std::nullopt;
  return picked;
}

// Takes whole cores, since no other container may get the rest of a core. Cores that are not needed
// are left out: if cores differ in size, whole cores may not give exactly the needed number.
CpuSet ExclusiveFinder::InWholeCores(const Demand& demand, const CpuSet& picked) const {
  const int count = Count(demand.need);
  const bool keeps = demand.keeps_held && count >= demand.held.size();
  CpuSet whole = cores_.WithSiblings(picked);
  for (const CpuSet& core : cores_.all()) {
    if (!core.IsSubsetOf(whole) || (keeps && core.Intersects(demand.held))) continue;
    if (whole.size() - core.size() >= count) whole -= core;
  }
  return whole;
}

std::optional<CpuSet> ExclusiveFinder::PickCpus(const Demand& demand, int pool) const {
  const Need& need = demand.need;
  std::vector<CpuSet> order = PreferredCpus(demand);
  CpuSet from;
  switch (FindSource(demand, pool)) {
    case Source::kNone:
      return std::nullopt;
    case Source::kBesideHeld:
      return PickBesideHeld(demand, pool);
    case Source::kHeld:
      // Among its present CPUs, those that it keeps are chosen only by nearness.
      from = demand.held;
      order = {book_.tree().at(pool).isolated};
      break;
    case Source::kIsolated:
      from = UsableIsolated(demand, pool);
      break;
    case Source::kOrdinary:
      from = OrdinaryCpus(demand, pool, Count(need));
      if (IsPacked(book_, need)) {
        for (const CpuSet& part : FewestParts(book_.tree(), from, pool, Count(need)))
          order.push_back(part);
      }
      break;
    case Source::kAnyKind:
      return PickAnyKind(demand, pool);
  }
  const auto picked = TakeIdleGroups(book_.machine(), Usable(need, from), Count(need), order);
  if (!picked.ok()) return std::nullopt;
  return *picked;
}

CpuSet ExclusiveFinder::PickBesideHeld(const Demand& demand, int pool) const {
  const Need& need = demand.need;
  const int count = Count(need);
  const int isolated = FurtherIsolated(demand, pool).value_or(0);
  std::vector<CpuSet> order = PreferredCpus(demand);
  CpuSet picked = demand.held;
  if (count - isolated > demand.held.size()) {
    const CpuSet from = OrdinaryCpus(demand, pool, count - isolated) | demand.held;
    picked = TakeIdleGroups(book_.machine(), from, count - isolated, order).value_or(CpuSet());
  }
  if (isolated == 0) return picked;
  order.insert(order.begin(), picked);
  const CpuSet from = picked | (UsableIsolated(demand, pool) - demand.held);
  return TakeIdleGroups(book_.machine(), from, count, order).value_or(CpuSet());
}

// Takes as many ordinary CPUs as possible, since the kernel balances threads only over these.
CpuSet ExclusiveFinder::PickAnyKind(const Demand& demand, int pool) const {
  const Need& need = demand.need;
  const int count = Count(need);
  std::vector<CpuSet> order = PreferredCpus(demand);
  const int ordinary = std::clamp(Ordinary(demand, pool), 0, count);
  CpuSet picked;
  if (ordinary > 0) {
    picked = TakeIdleGroups(book_.machine(), OrdinaryCpus(demand, pool, ordinary), ordinary, order)
                 .value_or(CpuSet());
  }
  order.insert(order.begin(), picked);
  const CpuSet from = picked | UsableIsolated(demand, pool);
  return TakeIdleGroups(book_.machine(), from, count, order).value_or(CpuSet());
}

std::vector<CpuSet> ExclusiveFinder::PreferredCpus(const Demand& demand) const {
  std::vector<CpuSet> preferred;
  if (!demand.held.empty()) preferred.push_back(demand.held);
  preferred.insert(preferred.end(), demand.preferred.begin(), demand.preferred.end());
  if (demand.pick_by_hints) {
    for (const LocalityHint& hint : demand.hints)
      preferred.push_back(hint.cpus);
  }
  const std::span<const CpuSet> wanted = ByPriority(demand.need.priority);
  preferred.insert(preferred.end(), wanted.begin(), wanted.end());
  return preferred;
}

std::span<const CpuSet> ExclusiveFinder::ByPriority(CpuPriority priority) const {
  switch (priority) {
    case CpuPriority::kHigh:
      return high_;
    case CpuPriority::kNormal:
      return normal_;
    case CpuPriority::kLow:
      return low_;
    default:
      return {};
  }
}

int ExclusiveFinder::PriorityScore(const Need& need, const CpuSet& cpus) const {
  const std::span<const CpuSet> wanted = ByPriority(need.priority);
  auto grade = static_cast<int>(wanted.size());
  int left = need.full;
  int score = 0;
  for (const CpuSet& set : wanted) {
    const int part = std::min(left, set.CountCommon(cpus));
    left -= part;
    score += part * --grade;
  }
  return score;
}

}  // namespace resmgr
