// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "pkg/allocator/alignment.h"
#include "policies/topology-aware/grant_book.h"
#include "policies/topology-aware/need.h"

namespace resmgr {

// Finds the exclusive CPUs of a container in a pool, among the free ones of the book:
//   1. CPUs that it holds, or a part of them. If it needs more, further ones beside them: isolated
//      ones if it holds such and enough of them are free, else ordinary ones, else both kinds. No
//      others replace held CPUs on which it runs;
//   2. isolated ones if it is to have them;
//   3. ordinary ones: CPUs that sharing containers can spare without moving or, if these are too
//      few, any CPUs for which sharing containers move to larger pools (GrantBook::MakeRoom);
//   4. for a demand of any kind, ordinary and isolated ones together.
// If the CPUs must lie in one place (Need::alignment), each place of the pool is tried by itself,
// and the tightest one that has enough is taken. Held CPUs stay, or are a part of the result, even
// if they lie in several places. Changes nothing. The book must outlive it.
class ExclusiveFinder {
 public:
  explicit ExclusiveFinder(const GrantBook& book);

  // How many CPUs a grant takes: whole cores if hyperthreads are hidden. If cores have different
  // numbers of threads, this is the minimum.
  int Count(const Need& need) const;
  // Whether these CPUs are what a grant takes, no fewer and no more.
  bool Meets(const Need& need, const CpuSet& cpus) const;
  // Whether the pool has all of the needed CPUs; the fraction may come from a pool around it. Picks
  // nothing, so it is cheap enough to ask for all pools.
  bool Has(const Demand& demand, int pool) const {
    if (demand.need.alignment != Alignment::kPrefer) return Confined(demand, pool).has_value();
    return FindSource(demand, pool) != Source::kNone;
  }
  // Picks the CPUs; nullopt if the pool does not have them.
  std::optional<CpuSet> Pick(const Demand& demand, int pool) const;
  // The part of `cpus` in one place that has enough of them: the place with the most of
  // `preferred`, then the one with the fewest of `cpus`. All of `cpus` if no place has enough.
  CpuSet PartInOnePlace(const Need& need, const CpuSet& cpus, const CpuSet& preferred = {}) const;
  // How many of these CPUs the container could have: at most, after other containers end, and now.
  int MostOf(const Need& need, const CpuSet& cpus) const;
  int FreeOf(const Demand& demand, const CpuSet& cpus) const;
  const AlignedPlaces& places() const { return places_; }
  // The number of the pool's free isolated CPUs that such a need can take.
  int FreeIsolated(const Need& need, int pool) const {
    return Usable(need, book_.cpus().FreeIsolated(pool)).size();
  }
  // Whether the shared set of the pool has room for the fraction.
  bool HasShared(const Need& need, int pool) const;
  // Scores the best of these CPUs, as many as it needs, by the wanted priority; larger is better; 0
  // if no priority is wanted or all CPUs are equal.
  int PriorityScore(const Need& need, const CpuSet& cpus) const;

 private:
  enum class Source { kNone, kHeld, kBesideHeld, kIsolated, kOrdinary, kAnyKind };

  Source FindSource(const Demand& demand, int pool) const;
  std::optional<Demand> Confined(const Demand& demand, int pool) const;
  std::optional<CpuSet> PickAny(const Demand& demand, int pool) const;
  bool CanKeep(const Demand& demand, int pool) const;
  std::optional<int> FurtherIsolated(const Demand& demand, int pool) const;
  bool HasIsolated(const Demand& demand, int pool) const;
  int Ordinary(const Demand& demand, int pool) const;
  CpuSet OrdinaryCpus(const Demand& demand, int pool, int count) const;
  std::optional<CpuSet> PickCpus(const Demand& demand, int pool) const;
  CpuSet InWholeCores(const Demand& demand, const CpuSet& picked) const;
  CpuSet PickBesideHeld(const Demand& demand, int pool) const;
  CpuSet PickAnyKind(const Demand& demand, int pool) const;
  CpuSet Usable(const Need& need, const CpuSet& cpus) const;
  // The part of the pool's free isolated CPUs, within the demand's place, that such a need can
  // take.
  CpuSet UsableIsolated(const Demand& demand, int pool) const;
  CpuSet UsableOrdinary(const Demand& demand, const CpuSet& cpus) const;
  int Grantable(const Demand& demand, int pool) const;
  std::vector<CpuSet> PreferredCpus(const Demand& demand) const;
  std::span<const CpuSet> ByPriority(CpuPriority priority) const;

  const GrantBook& book_;
  const AlignedPlaces places_;
  const OnlineCores& cores_;
  // All online CPUs by rank for each priority, the best first.
  const std::vector<CpuSet> high_;
  const std::vector<CpuSet> normal_;
  const std::vector<CpuSet> low_;
};

}  // namespace resmgr
