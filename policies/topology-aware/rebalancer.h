// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/topology-aware/grant_book.h"
#include "policies/topology-aware/need.h"
#include "policies/topology-aware/placer.h"

namespace resmgr {

// Moves containers to better places. A move is kept when it is better for all containers together:
// the scores of all containers, summed rule by rule, must rise, and the stronger rule counts first.
// So no former state comes back, and rebalancing ends whatever affinities the containers have. A
// wish of one container about another counts for both, since either of them may move.
class Rebalancer {
 public:
  // Moves that are tried at most, kept or not; each takes a look at all containers.
  static constexpr int kMostTrials = 1000;

  // Both must outlive it.
  Rebalancer(GrantBook& book, const Placer& placer) : book_(book), placer_(placer) {}

  // A container with a grant, and its demand without affinities.
  void Add(ContainerKey key, Demand demand);
  // Adds a text to the reason of a container that moves.
  void Note(ContainerKey key, std::string_view text);
  // Adds an affinity: one container wants to be near the other (weight above 0) or away from it.
  // Ignored if one of them was not added.
  void Want(ContainerKey one, ContainerKey other, int64_t weight);

  // Returns the containers whose grants changed.
  std::set<ContainerKey> Run();

 private:
  struct Entry {
    ContainerKey key{};
    Demand demand{};
    std::vector<std::pair<size_t, int64_t>> pairs{};  // the other's index, and the weight
    int pool = -1;  // the pool where it counts for affinities; -1: none
  };
  // The total score: the number of containers that have the CPUs that they are entitled to, then
  // the rules of PoolScore.
  using Total = std::array<int64_t, 1 + kPoolRules>;

  bool Improve(Entry& entry);
  std::optional<Grant> FindBetter(const Demand& demand, const Grant& held) const;
  std::optional<Grant> FindMoreCpus(Demand demand, const Grant& held) const;
  void Settle(const CpuSet& granted);
  Total SumUp();
  void FollowAffinities();
  std::vector<int64_t> AffinitiesOf(const Entry& entry) const;

  GrantBook& book_;
  const Placer& placer_;
  std::vector<Entry> entries_;
  std::map<ContainerKey, size_t> index_;
  int64_t affinity_ = 0;  // sum of all pairs' affinities, relative to the start
  Total total_{};
  int trials_ = 0;
};

}  // namespace resmgr
