// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "policies/topology-aware/grant_book.h"
#include "policies/topology-aware/need.h"
#include "policies/topology-aware/pool_score.h"

namespace resmgr {

// One container to find a place for.
struct Wish {
  Need need{};
  std::vector<int64_t> affinities{};  // AffinityScores by pool; may be empty
  std::vector<LocalityHint> hints{};  // those that count
  bool strict_hints = false;
  bool pick_by_hints = false;
  bool may_move = false;  // exclusive CPUs, when everything is rebalanced
  // Exclusive CPUs that it has at this moment, free in the book: it may have them again, or a part
  // of them, even where nobody else could be granted any.
  CpuSet held{};
  std::vector<CpuSet> preferred{};  // CPUs to take before others, in this order
};

// Finds places for containers in what the book has left. Changes nothing. The book must outlive it.
class Placer {
 public:
  explicit Placer(const GrantBook& book) : book_(book) {}

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
  int ExclusiveCount(const Need& need) const;

 private:
  // How exclusive CPUs are found in a pool.
  enum class Source { kNone, kHeld, kIsolated, kOrdinary };

  std::vector<PoolScore> Candidates(const Wish& wish) const;
  void ScoreHints(const Wish& wish, PoolScore& score) const;
  bool ScoreMemory(const Need& need, PoolScore& score) const;
  void ScoreBurst(const Need& need, PoolScore& score) const;
  void ScoreClass(const Need& need, PoolScore& score) const;
  Source FindSource(const Wish& wish, int pool) const;
  bool HasShared(const Need& need, int pool) const;
  bool CanKeep(const Wish& wish, int pool) const;
  bool CpusFit(const Wish& wish, int pool) const;
  CpuSet WholeCores(const CpuSet& cpus) const;
  CpuSet Pick(const Wish& wish, int pool, Source source) const;
  std::vector<CpuSet> PreferredCpus(const Wish& wish) const;
  CpuSet CpusOfKind(CoreKind kind) const;

  StatusOr<Grant> PlaceUnpooled(const Wish& wish) const;
  Status Shortage(const Wish& wish) const;

  const GrantBook& book_;
};

}  // namespace resmgr
