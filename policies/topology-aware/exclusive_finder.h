// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "pkg/allocator/alignment.h"
#include "policies/topology-aware/demand.h"
#include "policies/topology-aware/grant_book.h"
#include "policies/topology-aware/need.h"

namespace resmgr {

// Finds the exclusive CPUs of a container inside of a pool, in what the book has left:
//   1. those that it holds, or a part of them; where it needs more, further ones beside them, of
//      the isolated ones if it holds such and enough of them are free, else ordinary ones, else of
//      both kinds; no others where it runs on them;
//   2. isolated ones, if it shall have them;
//   3. ordinary ones: those that sharing containers can spare without moving or, when these are too
//      few, any for which sharing containers move to larger pools (GrantBook::MakeRoom);
//   4. for a demand of any kind, ordinary and isolated ones together.
// Where they have to lie in one place (Need::alignment), each place of the pool is tried by itself,
// and the one that has enough and fits tightest is taken. CPUs that the container holds stay or are
// a part of what it gets even if they lie in several places.
// Changes nothing. The book must outlive it.
class ExclusiveFinder {
 public:
  explicit ExclusiveFinder(const GrantBook& book);

  // How many CPUs a grant takes: whole cores where hyperthreads are hidden. Where cores have
  // different numbers of threads, this is the minimum.
  int Count(const Need& need) const;
  // Whether these CPUs are what a grant takes, no fewer and no more.
  bool Meets(const Need& need, const CpuSet& cpus) const;
  // Whether the pool has them all; for the fraction there is a pool around it. Nothing is picked,
  // so all pools can be asked.
  bool Has(const Demand& demand, int pool) const {
    if (demand.need.alignment != Alignment::kPrefer) return Confined(demand, pool).has_value();
    return FindSource(demand, pool) != Source::kNone;
  }
  // nullopt when it has not.
  std::optional<CpuSet> Pick(const Demand& demand, int pool) const;
  // Where a place has as many of the CPUs as it needs: those in one place, the one with the most of
  // `preferred` and then the fewest in all. Else all.
  CpuSet PartInOnePlace(const Need& need, const CpuSet& cpus, const CpuSet& preferred = {}) const;
  // How many CPUs it could have of these; as soon as others end, and now.
  int MostOf(const Need& need, const CpuSet& cpus) const;
  int FreeOf(const Demand& demand, const CpuSet& cpus) const;
  const AlignedPlaces& places() const { return places_; }
  // Whether the shared set of the pool has room for the fraction.
  bool HasShared(const Need& need, int pool) const;
  // How much the best of these CPUs, as many as it needs, are of the wanted priority; larger is
  // better, and 0 where there is none wanted or all are equal.
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
  // As Usable, of what the pool has free and the demand is confined to.
  CpuSet UsableIsolated(const Demand& demand, int pool) const;
  CpuSet UsableOrdinary(const Demand& demand, const CpuSet& cpus) const;
  int Grantable(const Demand& demand, int pool) const;
  CpuSet WholeCores(const CpuSet& cpus) const { return WholeCoresFrom(1, cpus); }
  // The cores that have at least so many threads.
  CpuSet WholeCoresFrom(int threads, const CpuSet& cpus) const;
  std::vector<CpuSet> PreferredCpus(const Demand& demand) const;
  std::span<const CpuSet> ByPriority(CpuPriority priority) const;

  const GrantBook& book_;
  const AlignedPlaces places_;
  int threads_ = 1;      // of the core that has most
  bool uneven_ = false;  // some cores have fewer
  // All online CPUs by priority, the best first.
  const std::vector<CpuSet> high_;
  const std::vector<CpuSet> normal_;
  const std::vector<CpuSet> low_;
};

}  // namespace resmgr
