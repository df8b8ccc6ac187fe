// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/rebalancer.h"

#include <utility>

#include "pkg/claims/held_claims.h"
#include "policies/topology-aware/pool_score.h"

namespace resmgr {
namespace {

// Limit of rounds. A move may make room for a container that was tried before, so there are
// several; after the last one, further moves wait for the next rebalance.
constexpr int kRebalanceRounds = 4;

}  // namespace

void Rebalancer::Add(ContainerKey key, Demand demand) {
  index_.emplace(key, entries_.size());
  entries_.push_back({.key = key, .demand = std::move(demand)});
}

void Rebalancer::Note(ContainerKey key, std::string_view text) {
  const auto entry = index_.find(key);
  if (entry != index_.end()) entries_[entry->second].demand.need.why += text;
}

void Rebalancer::Want(ContainerKey one, ContainerKey other, int64_t weight) {
  const auto first = index_.find(one);
  const auto second = index_.find(other);
  if (first == index_.end() || second == index_.end() || first == second) return;
  entries_[first->second].pairs.emplace_back(second->second, weight);
  entries_[second->second].pairs.emplace_back(first->second, weight);
}

std::set<ContainerKey> Rebalancer::Run() {
  const GrantBook::Saved before = book_.Save();
  std::set<ContainerKey> changed;
  Settle({});
  total_ = SumUp();
  for (int round = 0; round < kRebalanceRounds; ++round) {
    bool moved = false;
    for (Entry& entry : entries_) {
      if (!Improve(entry)) continue;
      moved = true;
      changed.insert(entry.key);
    }
    if (!moved) break;
  }
  for (const auto& [key, place] : before.places)
    if (book_.PlaceOf(key) != place) changed.insert(key);
  return changed;
}

// Tries to move the container to a better place; returns whether it moved.
bool Rebalancer::Improve(Entry& entry) {
  // The containers of a claim know its CPUs.
  if (trials_ == kMostTrials || HeldClaims::IsPart(entry.key)) return false;
  if (!entry.pairs.empty()) entry.demand.affinities = AffinitiesOf(entry);
  Grant held = *book_.Take(entry.key);
  std::optional<Grant> better = FindBetter(entry.demand, held);
  book_.Give(entry.key, held);
  if (!better) return false;
  ++trials_;
  const GrantBook::Saved before = book_.Save();
  const CpuSet granted = better->exclusive - held.exclusive;
  book_.Take(entry.key);
  book_.Give(entry.key, *std::move(better));
  Settle(granted);
  const Total total = SumUp();
  if (total > total_) {
    total_ = total;
    return true;
  }
  book_.Take(entry.key);
  book_.Give(entry.key, std::move(held));
  book_.Restore(before);
  FollowAffinities();
  return false;
}

std::optional<Grant> Rebalancer::FindBetter(const Demand& demand, const Grant& held) const {
  if (held.need.cpu_class == demand.need.cpu_class && !held.exclusive.empty() &&
      held.exclusive.size() < placer_.ExclusiveCount(demand.need)) {
    return FindMoreCpus(demand, held);
  }
  if (!held.exclusive.empty() && !demand.may_move) return std::nullopt;
  StatusOr<Grant> fresh = placer_.Place(demand);
  if (!fresh.ok()) return std::nullopt;
  if (held.need.cpu_class != demand.need.cpu_class) {
    // The container has less than it is entitled to, so it moves only if it gets that now.
    if (fresh->need.cpu_class != demand.need.cpu_class) return std::nullopt;
    return *std::move(fresh);
  }
  if (fresh->pool == held.pool) return std::nullopt;
  const PoolComparison compared =
      Compare(placer_.Score(demand, fresh->pool), placer_.Score(demand, held.pool));
  // More room alone is not a reason to move a container.
  if (compared.order <= 0 || compared.rule >= PoolRule::kPacking) return std::nullopt;
  fresh->reason += "; moved there to improve its place";
  fresh->cold = held.cold && book_.WhyNotCold(*fresh).empty();
  return *std::move(fresh);
}

// For a container with fewer exclusive CPUs than it requests: a grant with further CPUs near to its
// own.
std::optional<Grant> Rebalancer::FindMoreCpus(Demand demand, const Grant& held) const {
  placer_.PreferHeld(held.exclusive, demand);
  return placer_.PlaceNear(demand, book_.tree().SmallestWith(held.exclusive));
}

// Lets the effects of a move on other grants happen: sharing containers make room or move back, and
// zones of memory become larger or smaller.
void Rebalancer::Settle(const CpuSet& granted) {
  book_.MakeRoom(granted);
  book_.MoveBack();
  book_.WidenMemory();
  while (!book_.NarrowMemory().empty()) {
  }
}

Rebalancer::Total Rebalancer::SumUp() {
  FollowAffinities();
  Total total{};
  for (const Entry& entry : entries_) {
    const Grant& grant = *book_.Find(entry.key);
    if (grant.need.cpu_class == entry.demand.need.cpu_class) {
      total[0] += 1 + grant.exclusive.size();
    }
    if (entry.pool < 0) continue;
    const PoolScore score = placer_.ScoreHeld(entry.demand, grant);
    for (size_t rule = 0; rule < kPoolRules; ++rule)
      total[1 + rule] += score.keys[rule];
  }
  total[1 + static_cast<size_t>(PoolRule::kAffinity)] = affinity_;
  return total;
}

// The weight of a pair is the same for both containers, so if one of them moves, the sum over all
// pairs changes by the difference of its own score.
void Rebalancer::FollowAffinities() {
  for (Entry& entry : entries_) {
    const Grant& grant = *book_.Find(entry.key);
    const int pool = grant.IsPooled() ? grant.pool : -1;
    if (pool == entry.pool) continue;
    if (!entry.pairs.empty()) {
      const std::vector<int64_t> scores = AffinitiesOf(entry);
      if (entry.pool >= 0) affinity_ -= scores[static_cast<size_t>(entry.pool)];
      if (pool >= 0) affinity_ += scores[static_cast<size_t>(pool)];
    }
    entry.pool = pool;
  }
}

std::vector<int64_t> Rebalancer::AffinitiesOf(const Entry& entry) const {
  std::vector<int64_t> weights(book_.tree().size());
  for (const auto& [other, weight] : entry.pairs) {
    const int pool = entries_[other].pool;
    if (pool >= 0) weights[static_cast<size_t>(pool)] += weight;
  }
  return AffinityScores(book_.tree(), weights);
}

}  // namespace resmgr
