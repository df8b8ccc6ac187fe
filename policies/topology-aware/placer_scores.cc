// SPDX-License-Identifier: Apache-2.0
// The scores by which Placer chooses among pools.
#include <algorithm>

#include "policies/topology-aware/placer.h"

namespace resmgr {
namespace {

// Limit of candidates that are kept for explain.
constexpr size_t kMostCandidates = 8;

// The score that the next pool must beat; nullptr if fewer candidates than the limit are kept.
const PoolScore* WorstOf(const std::vector<PoolScore>& best) {
  return best.size() == kMostCandidates ? &best.back() : nullptr;
}

// Inserts a score that beats the worst one. Among equal scores, the earlier one stays first.
void KeepAmong(std::vector<PoolScore>& best, const PoolScore& score) {
  if (best.size() == kMostCandidates) best.pop_back();
  const auto better = [](const PoolScore& a, const PoolScore& b) {
    return Compare(a, b).order > 0;
  };
  best.insert(std::ranges::upper_bound(best, score, better), score);
}

}  // namespace

std::vector<PoolScore> Placer::Candidates(const Demand& demand) const {
  std::vector<PoolScore> best;
  best.reserve(kMostCandidates);
  PoolScore score;
  Packer packer(book_, demand.need, ExclusiveCount(demand.need));
  // Pools with the same memory follow each other, since children come before their parents: so
  // memory is scored once for several pools.
  PoolScore memory;
  const Pool* scored = nullptr;
  for (const Pool& pool : book_.tree().pools()) {
    if (pool.cpus.empty()) continue;
    if (scored == nullptr || pool.memory_pool != scored->memory_pool ||
        pool.near_memory != scored->near_memory) {
      memory = ScoreMemory(demand.need, pool.id);
      scored = &pool;
    }
    score = memory;
    ScoreBeside(demand, pool.id, score);
    if (ScoreRoom(demand.need, packer, WorstOf(best), score)) KeepAmong(best, score);
  }
  for (PoolScore& candidate : best)
    NoteFree(candidate);
  return best;
}

// Notes what the pool has free now, since the decision will take some of it.
void Placer::NoteFree(PoolScore& candidate) const {
  candidate.free = static_cast<int32_t>(book_.cpus().Room(candidate.pool));
  const auto zone = book_.memory().ZoneAt(candidate.pool, kAllMemoryTypes);
  if (zone) candidate.free_memory = std::max(book_.memory().Free(*zone), Bytes{0}).value;
}

PoolScore Placer::Score(const Demand& demand, int pool) const {
  PoolScore score = ScoreMemory(demand.need, pool);
  ScoreBeside(demand, pool, score);
  Packer packer(book_, demand.need, ExclusiveCount(demand.need));
  ScoreRoom(demand.need, packer, nullptr, score);
  return score;
}

// Scores the rules before kPacking. Those about memory are scored already.
void Placer::ScoreBeside(const Demand& demand, int pool, PoolScore& score) const {
  score.pool = pool;
  ScoreHints(demand, score);
  const bool memory_fits = score[PoolRule::kFits] > 0;
  const bool hints_fit = !demand.strict_hints || score[PoolRule::kHints] > 0;
  score[PoolRule::kFits] = memory_fits && hints_fit && CpusFit(demand, pool) ? 1 : 0;
  if (!demand.affinities.empty()) {
    score[PoolRule::kAffinity] = demand.affinities[static_cast<size_t>(pool)];
  }
  ScoreBurst(demand.need, score);
  ScoreKind(demand.need, score);
  score[PoolRule::kDeeper] = book_.tree().at(pool).depth;
}

// Scores the rules from kPacking on. With another pool's score, returns false as soon as it is
// clear that this pool is not better.
bool Placer::ScoreRoom(const Need& need, Packer& packer, const PoolScore* other,
                       PoolScore& score) const {
  const std::strong_ordering stronger =
      other == nullptr ? std::strong_ordering::greater
                       : Compare(score, *other, PoolRule::kFits, PoolRule::kDeeper).order;
  if (stronger < 0) return false;
  if (score[PoolRule::kFits] > 0) score[PoolRule::kPacking] = packer.Score(score.pool);
  if (stronger == 0 && score[PoolRule::kPacking] < (*other)[PoolRule::kPacking]) return false;
  ScoreClass(need, score);
  score[PoolRule::kFirst] = -score.pool;
  return stronger > 0 || Compare(score, *other, PoolRule::kPacking).order > 0;
}

// As Score, for a container in its present place, which needs only room up to its limits. If it is
// packed, its own CPUs count as room for its CPU limit, too.
PoolScore Placer::ScoreHeld(const Demand& demand, const Grant& grant) const {
  Need rest = grant.need;
  if (rest.cpu_limit > 0 && !IsPacked(book_, rest)) {
    rest.cpu_limit = std::max<int64_t>(rest.cpu_limit - rest.fraction, 1);
  }
  rest.memory_limit = std::max(rest.memory_limit - rest.memory, Bytes{0});
  rest.fraction = 0;
  rest.memory = Bytes{};
  rest.huge.clear();
  PoolScore score = ScoreMemory(rest, grant.pool);
  ScoreHints(demand, score);
  const bool memory_fits = score[PoolRule::kFits] > 0;
  const bool cpus_fit = !rest.Shares() || finder_.HasShared(rest, grant.pool);
  const bool hints_fit = !demand.strict_hints || score[PoolRule::kHints] > 0;
  score[PoolRule::kFits] = cpus_fit && memory_fits && hints_fit ? 1 : 0;
  ScoreBurst(rest, score);
  if (!grant.exclusive.empty()) {
    const CpuSet& isolated = book_.tree().at(book_.tree().root()).isolated;
    const bool all_isolated = grant.exclusive.IsSubsetOf(isolated);
    score[PoolRule::kIsolated] = rest.isolated_explicit && all_isolated ? 1 : 0;
    score[PoolRule::kPriority] = finder_.PriorityScore(rest, grant.exclusive);
  }
  score[PoolRule::kDeeper] = book_.tree().at(grant.pool).depth;
  return score;
}

void Placer::ScoreHints(const Demand& demand, PoolScore& score) const {
  constexpr double kUnit = 1e6;
  double all = 1;
  double some = 1;
  for (const LocalityHint& hint : demand.hints) {
    const double part = static_cast<double>(HintScore(book_.tree(), score.pool, hint)) / kUnit;
    all *= part;
    if (part > 0) some *= part;
  }
  score[PoolRule::kHints] = static_cast<int64_t>(all * kUnit * kUnit);
  score[PoolRule::kSomeHints] = static_cast<int64_t>(some * kUnit * kUnit);
}

// Whether the pool is near to all devices and volumes that the demand's hints name.
bool Placer::IsNear(const Demand& demand, int pool) const {
  PoolScore score{.pool = pool};
  ScoreHints(demand, score);
  return score[PoolRule::kHints] > 0;
}

// Scores the rules about memory; kFits tells whether there is room for it at all. The result
// depends only on Pool::memory_pool and Pool::near_memory of the pool.
PoolScore Placer::ScoreMemory(const Need& need, int pool) const {
  const MemoryLedger& memory = book_.memory();
  const PoolTree& tree = book_.tree();
  const int memory_pool = tree.at(pool).memory_pool;
  PoolScore score{.pool = pool};
  if (need.memory_types != kAllMemoryTypes) {
    const Pool& holder = tree.at(memory_pool);
    score[PoolRule::kMemoryType] = (need.memory_types & ~holder.memory_types) == 0 ? 1 : 0;
  }
  auto zone = memory.Find(pool, need.memory_types, need.memory, need.huge);
  if (!zone && !need.huge.empty()) zone = memory.Find(pool, need.memory_types, need.memory);
  if (!zone) {
    Grant anywhere{.need = need};
    score[PoolRule::kFits] = FindMemory(anywhere, pool) ? 1 : 0;
    return score;
  }
  score[PoolRule::kFits] = 1;
  score[PoolRule::kMemoryHere] = zone->pool == memory_pool && tree.at(pool).near_memory ? 1 : 0;
  // Negative if grants of larger zones may fill this zone; then it has no room even for a container
  // without a limit.
  score[PoolRule::kMemoryLimit] = std::min(memory.Free(*zone), need.memory_limit).value;
  score[PoolRule::kFewerNodes] = -memory.Nodes(*zone).size();
  return score;
}

void Placer::ScoreBurst(const Need& need, PoolScore& score) const {
  const Pool& pool = book_.tree().at(score.pool);
  if (need.cpu_limit > 0) {
    score[PoolRule::kCpuLimit] = std::min(RoomForLimit(book_, need, pool.id), need.cpu_limit);
  }
  if (!need.unlimited) return;
  const bool finer_below = std::all_of(pool.children.begin(), pool.children.end(), [&](int child) {
    return book_.tree().at(child).level > need.unlimited_level;
  });
  score[PoolRule::kUnlimitedLevel] = pool.level <= need.unlimited_level && finer_below ? 1 : 0;
}

// Scores the kinds of CPUs, only for containers with exclusive CPUs.
void Placer::ScoreKind(const Need& need, PoolScore& score) const {
  if (need.cpu_class != CpuClass::kExclusive) return;
  const CpuLedger& cpus = book_.cpus();
  if (need.isolated_explicit) {
    const bool enough = finder_.FreeIsolated(need, score.pool) >= ExclusiveCount(need);
    score[PoolRule::kIsolated] = enough ? 1 : 0;
  }
  score[PoolRule::kPriority] = finder_.PriorityScore(need, cpus.Free(score.pool));
}

void Placer::ScoreClass(const Need& need, PoolScore& score) const {
  const CpuLedger& cpus = book_.cpus();
  if (need.cpu_class != CpuClass::kExclusive) {
    score[PoolRule::kClassRoom] = -cpus.Members(score.pool);
    score[PoolRule::kSharedRoom] = cpus.Room(score.pool);
    return;
  }
  const int isolated = need.isolated ? finder_.FreeIsolated(need, score.pool) : 0;
  score[PoolRule::kClassRoom] = isolated > 0 && isolated >= ExclusiveCount(need)
                                    ? kIsolatedRoom + isolated
                                    : cpus.Sliceable(score.pool, need.fraction);
}

}  // namespace resmgr
