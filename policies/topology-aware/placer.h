// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "policies/topology-aware/exclusive_finder.h"
#include "policies/topology-aware/grant_book.h"
#include "policies/topology-aware/need.h"
#include "policies/topology-aware/pool_score.h"
#include "policies/topology-aware/wish.h"

namespace resmgr {

// Finds places for containers in what the book has left. Changes nothing. The book must outlive it.
class Placer {
 public:
  explicit Placer(const GrantBook& book) : book_(book), finder_(book) {}

  // The best pool for it and its CPUs there. A container that only shares is not refused for want
  // of CPU time: it goes to the root. ResourceExhausted names the need and the shortage;
  // InvalidArgument says that the need can never be met.
  StatusOr<Grant> Place(const Wish& wish) const;
  // In this pool or the nearest one above that has room; nullopt when none has.
  std::optional<Grant> PlaceNear(const Wish& wish, int pool) const;
  // In exactly this pool, nullopt when it does not fit there.
  std::optional<Grant> PlaceIn(const Wish& wish, int pool) const;
  // The container stays without CPUs of its own, in any case.
  Grant PlaceShared(const Wish& wish, std::string reason) const;

  // A zone for the memory of a grant whose pool is set. False when there is no room in any zone; it
  // then has the largest one.
  bool FindMemory(Grant& grant) const;

  PoolScore Score(const Wish& wish, int pool) const;

  // How many CPUs a grant takes: whole cores where hyperthreads are hidden.
  int ExclusiveCount(const Need& need) const { return finder_.Count(need); }

 private:
  std::vector<PoolScore> Candidates(const Wish& wish) const;
  void ScoreHints(const Wish& wish, PoolScore& score) const;
  bool ScoreMemory(const Need& need, PoolScore& score) const;
  void ScoreBurst(const Need& need, PoolScore& score) const;
  void ScoreClass(const Need& need, PoolScore& score) const;
  bool CpusFit(const Wish& wish, int pool) const;
  StatusOr<Grant> PlaceUnpooled(const Wish& wish) const;
  bool IsNear(const Wish& wish, int pool) const;
  Status Shortage(const Wish& wish) const;
  std::string Needs(const Wish& wish) const;
  std::string Levels(const Need& need, std::span<const int> pools) const;

  const GrantBook& book_;
  const ExclusiveFinder finder_;
};

}  // namespace resmgr
