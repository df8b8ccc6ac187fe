// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/exclusive_finder.h"

#include <algorithm>
#include <array>
#include <span>

#include "pkg/allocator/idle_groups.h"

namespace resmgr {
namespace {

std::array<CoreKind, 2> KindsInOrder(CpuPriority priority) {
  switch (priority) {
    case CpuPriority::kHigh:
      return {CoreKind::kPerformance, CoreKind::kNormal};
    case CpuPriority::kLow:
      return {CoreKind::kEfficient, CoreKind::kNormal};
    default:
      return {CoreKind::kNormal, CoreKind::kPerformance};
  }
}

}  // namespace

int ExclusiveFinder::Count(const Need& need) const {
  if (!need.hide_hyperthreads) return need.full;
  int threads = 1;
  for (const CpuSet& core : book_.machine().cores())
    threads = std::max(threads, core.size());
  return (need.full + threads - 1) / threads * threads;
}

bool ExclusiveFinder::HasShared(const Need& need, int pool) const {
  return book_.cpus().SharedCpus(pool) > 0 && book_.cpus().Room(pool) >= need.fraction;
}

ExclusiveFinder::Source ExclusiveFinder::FindSource(const Wish& wish, int pool) const {
  const Need& need = wish.need;
  const int count = Count(need);
  if (CanKeep(wish, pool)) {
    if (count <= wish.held.size()) return Source::kHeld;
    if (FurtherIsolated(wish, pool)) return Source::kBesideHeld;
  }
  if (need.isolated) {
    const int isolated = Usable(need, book_.cpus().FreeIsolated(pool)).size();
    if (isolated >= count && (need.fraction == 0 || HasShared(need, pool))) {
      return Source::kIsolated;
    }
  }
  return Ordinary(wish, pool) >= count ? Source::kOrdinary : Source::kNone;
}

// All that it holds, as far as its needs are not smaller.
bool ExclusiveFinder::CanKeep(const Wish& wish, int pool) const {
  const CpuSet& held = wish.held;
  if (held.empty() || !held.IsSubsetOf(book_.tree().at(pool).cpus)) return false;
  if (wish.need.isolated_required && !held.IsSubsetOf(book_.tree().at(pool).isolated)) return false;
  if (Usable(wish.need, held) != held) return false;
  // Something must be left for the fraction.
  return wish.need.fraction == 0 || !book_.cpus().SharedSet(pool).IsSubsetOf(held);
}

// How many of the CPUs that it needs beside those it holds are to be isolated ones; nullopt when
// the pool has not enough. CPUs of one kind are better than a mixture: the kernel balances threads
// over ordinary CPUs only.
std::optional<int> ExclusiveFinder::FurtherIsolated(const Wish& wish, int pool) const {
  const Need& need = wish.need;
  const CpuLedger& cpus = book_.cpus();
  const int more = Count(need) - wish.held.size();
  const int held_isolated = wish.held.CountCommon(book_.tree().at(pool).isolated);
  const int held_ordinary = wish.held.size() - held_isolated;
  int isolated = 0;
  if (need.isolated || held_isolated > 0) {
    isolated = std::min(Usable(need, cpus.FreeIsolated(pool) - wish.held).size(), more);
  }
  const bool has_room =
      need.fraction == 0 || cpus.Room(pool) >= need.fraction + int64_t{1000} * held_ordinary;
  const bool all_isolated = isolated == more && has_room;
  if (all_isolated && held_isolated > 0) return more;
  const int ordinary = Ordinary(wish, pool) - held_ordinary;
  if (ordinary >= more) return 0;
  if (all_isolated) return more;
  if (isolated < more && ordinary >= more - isolated) return isolated;
  return std::nullopt;
}

// How many ordinary CPUs it can have.
int ExclusiveFinder::Ordinary(const Wish& wish, int pool) const {
  const Need& need = wish.need;
  if (need.isolated_required) return 0;
  const int sliceable = book_.cpus().Sliceable(pool, need.fraction);
  if (!need.hide_hyperthreads || sliceable == 0) return sliceable;
  const CpuSet spare = book_.cpus().Spare(pool, need.fraction, PreferredCpus(wish));
  return std::min(sliceable, WholeCores(spare).size());
}

// Those that such a need can take.
CpuSet ExclusiveFinder::Usable(const Need& need, const CpuSet& cpus) const {
  return need.hide_hyperthreads ? WholeCores(cpus) : cpus;
}

CpuSet ExclusiveFinder::WholeCores(const CpuSet& cpus) const {
  CpuSet whole;
  for (const CpuSet& core : book_.machine().cores()) {
    if (core.IsSubsetOf(cpus)) whole |= core;
  }
  return whole;
}

std::optional<CpuSet> ExclusiveFinder::Pick(const Wish& wish, int pool) const {
  const Need& need = wish.need;
  std::vector<CpuSet> order = PreferredCpus(wish);
  CpuSet from;
  switch (FindSource(wish, pool)) {
    case Source::kNone:
      return std::nullopt;
    case Source::kBesideHeld:
      return PickBesideHeld(wish, pool);
    case Source::kHeld:
      // The part to keep of what it has is chosen by nearness alone.
      from = wish.held;
      order = {book_.tree().at(pool).isolated};
      break;
    case Source::kIsolated:
      from = book_.cpus().FreeIsolated(pool);
      break;
    case Source::kOrdinary:
      from = book_.cpus().Spare(pool, need.fraction, order);
      break;
  }
  const auto picked = TakeIdleGroups(book_.machine(), Usable(need, from), Count(need), order);
  if (!picked.ok()) return std::nullopt;
  return *picked;
}

CpuSet ExclusiveFinder::PickBesideHeld(const Wish& wish, int pool) const {
  const Need& need = wish.need;
  const CpuLedger& cpus = book_.cpus();
  const int count = Count(need);
  const int isolated = FurtherIsolated(wish, pool).value_or(0);
  std::vector<CpuSet> order = PreferredCpus(wish);
  CpuSet picked = wish.held;
  if (count - isolated > wish.held.size()) {
    const CpuSet from = Usable(need, cpus.Spare(pool, need.fraction, order)) |
                        (wish.held & book_.tree().at(pool).isolated);
    picked = TakeIdleGroups(book_.machine(), from, count - isolated, order).value_or(CpuSet());
  }
  if (isolated == 0) return picked;
  order.insert(order.begin(), picked);
  const CpuSet from = picked | Usable(need, cpus.FreeIsolated(pool) - wish.held);
  return TakeIdleGroups(book_.machine(), from, count, order).value_or(CpuSet());
}

std::vector<CpuSet> ExclusiveFinder::PreferredCpus(const Wish& wish) const {
  std::vector<CpuSet> preferred;
  if (!wish.held.empty()) preferred.push_back(wish.held);
  preferred.insert(preferred.end(), wish.preferred.begin(), wish.preferred.end());
  if (wish.pick_by_hints) {
    for (const LocalityHint& hint : wish.hints)
      preferred.push_back(hint.cpus);
  }
  if (wish.need.priority != CpuPriority::kNone) {
    for (const CoreKind kind : KindsInOrder(wish.need.priority))
      preferred.push_back(CpusOfKind(kind));
  }
  return preferred;
}

int ExclusiveFinder::CountPriority(const Need& need, const CpuSet& cpus) const {
  if (need.priority == CpuPriority::kNone) return 0;
  return std::min(need.full, CpusOfKind(KindsInOrder(need.priority)[0]).CountCommon(cpus));
}

CpuSet ExclusiveFinder::CpusOfKind(CoreKind kind) const {
  CpuSet cpus;
  for (const Cpu& cpu : book_.machine().cpus()) {
    if (cpu.online && cpu.kind == kind) cpus.Add(cpu.id);
  }
  return cpus;
}

}  // namespace resmgr
