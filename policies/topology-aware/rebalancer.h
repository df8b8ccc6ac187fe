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

// Moves containers to better places. A move is kept if it is better for all containers together:
// the scores of all containers, summed rule by rule, must rise, and stronger rules count first. So
// no former state comes back, and rebalancing ends, whatever affinities the containers have. An
// affinity of one container to another counts for both, since either of them may move.
class Rebalancer {
 public:
  // Limit of moves that are tried, kept or not; each examines all containers.
  static constexpr int kMostTrials = 1000;

  // Both must outlive it.
  Rebalancer(GrantBook& book, const Placer& placer) : book_(book), placer_(placer) {}

  // Adds a container that has a grant, with its demand without affinities.
  void Add(ContainerKey key, Demand demand);
  // Adds a text to the container's reason if it moves.
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
    std::vector<std::pair<size_t, int64_t>> pairs{};  // index of the other, and weight
    int pool = -1;  // the pool where it counts for affinities; -1: none
  };
  // The total score: first the containers that have what they are entitled to, with the number of
  // their exclusive CPUs; then the rules of PoolScore.
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
