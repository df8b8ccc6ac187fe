// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "policies/topology-aware/exclusive_finder.h"
#include "policies/topology-aware/grant_book.h"
#include "policies/topology-aware/need.h"
#include "policies/topology-aware/packing.h"
#include "policies/topology-aware/pool_score.h"

namespace resmgr {

// A pool with enough isolated CPUs has more than this by PoolRule::kClassRoom: it is better than
// one with any number of ordinary CPUs.
inline constexpr int64_t kIsolatedRoom = CpuSet::kBits;

// The text of ToString(PoolRule), in words that fit this need and the pool that was better.
std::string_view WhyBetter(PoolRule rule, const Need& need, const PoolScore& best);

// Finds places for containers among the free resources of the book. Changes nothing. The book must
// outlive it.
class Placer {
 public:
  explicit Placer(const GrantBook& book) : book_(book), finder_(book) {}

  // The best pool for the container, and its CPUs there. A container that only shares is not
  // refused for lack of CPU time: it goes to the root. For exclusive CPUs, sharing containers may
  // have to move to larger pools when the grant is given (GrantBook::MakeRoom); before a refusal,
  // isolated CPUs are taken even if the container does not ask for them. ResourceExhausted names
  // the need and the shortage; InvalidArgument says that the need can never be met.
  StatusOr<Grant> Place(const Demand& demand) const;
  // A grant in this pool or the nearest one above with room; nullopt if none has room.
  std::optional<Grant> PlaceNear(const Demand& demand, int pool) const;
  // A grant in exactly this pool; nullopt if it does not fit. If there are exclusive CPUs, the
  // shared part may be in a pool around this one, which then becomes the grant's pool.
  std::optional<Grant> PlaceIn(const Demand& demand, int pool) const;
  // A grant in this pool with only its own CPUs `own`, which are free in the book and fewer than
  // requested, and without memory; nullopt if no CPU would be left for its shared part.
  std::optional<Grant> KeepFewer(const Need& need, const CpuSet& own, int pool) const;
  // A grant without exclusive CPUs, which never fails.
  Grant PlaceShared(const Demand& demand, std::string reason) const;

  // Finds a zone for the memory of a grant, at this pool or above. An estimate that fits nowhere is
  // not counted, and this is noted in the reason. False if no zone has room for the certain part,
  // without regard to estimates of other containers; the grant then has the largest zone. Huge
  // pages that fit nowhere are not counted; the grant then has all nodes of its types.
  bool FindMemory(Grant& grant, int pool) const;
  // Keeps the memory of a running container where it is: the grant has all nodes of `held`, and
  // more if it does not fit there, or if its CPUs are in a larger pool now.
  void KeepMemory(const Grant& held, Grant& grant) const;
  // The need with all exclusive CPUs turned into shared ones.
  static Need Shared(Need need);

  PoolScore Score(const Demand& demand, int pool) const;
  // The score of a grant in the book, by the rules that are stronger than kPacking, without
  // affinities.
  PoolScore ScoreHeld(const Demand& demand, const Grant& grant) const;
  // Makes a demand prefer the container's present CPUs, which are free in the book, and then the
  // nearest ones.
  void PreferHeld(const CpuSet& held, Demand& demand) const;

  // How many CPUs a grant takes: whole cores where hyperthreads are hidden.
  int ExclusiveCount(const Need& need) const { return finder_.Count(need); }
  bool HasItsCount(const Need& need, const CpuSet& exclusive) const {
    return finder_.Meets(need, exclusive);
  }
  // The part of these CPUs in one place, if they must not be split, else all of them.
  CpuSet PartInOnePlace(const Need& need, const CpuSet& cpus, const CpuSet& preferred) const {
    return finder_.PartInOnePlace(need, cpus, preferred);
  }

 private:
  Grant WithoutMemory(const Demand& demand, std::string reason) const;
  bool FindZone(Grant& grant, int pool) const;
  std::vector<PoolScore> WithoutRoom(const Demand& demand, std::vector<PoolScore> candidates) const;
  std::optional<Grant> PlaceBest(const Demand& demand, std::vector<PoolScore> candidates) const;
  int PoolForFraction(const Demand& demand, int pool, const CpuSet& exclusive) const;
  bool KeepsShare(const Demand& demand, int pool) const;
  bool IsWhere(const Grant& held, const Grant& grant) const;
  std::vector<PoolScore> Candidates(const Demand& demand) const;
  void NoteFree(PoolScore& candidate) const;
  void ScoreHints(const Demand& demand, PoolScore& score) const;
  void ScoreBeside(const Demand& demand, int pool, PoolScore& score) const;
  bool ScoreRoom(const Need& need, Packer& packer, const PoolScore* other, PoolScore& score) const;
  PoolScore ScoreMemory(const Need& need, int pool) const;
  void ScoreBurst(const Need& need, PoolScore& score) const;
  void ScoreKind(const Need& need, PoolScore& score) const;
  void ScoreClass(const Need& need, PoolScore& score) const;
  bool CpusFit(const Demand& demand, int pool) const;
  StatusOr<Grant> PlaceUnpooled(const Demand& demand) const;
  bool IsNear(const Demand& demand, int pool) const;
  Status Shortage(const Demand& demand) const;
  Status WantOfPlace(const Demand& demand, std::string_view what) const;
  std::string Needs(const Demand& demand) const;
  std::string Levels(const Need& need, std::span<const int> pools) const;

  const GrantBook& book_;
  const ExclusiveFinder finder_;
};

}  // namespace resmgr
