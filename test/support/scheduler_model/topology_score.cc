// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include "test/support/scheduler_model/topology_match.h"

namespace resmgr::test {
namespace {

constexpr int kBestScore = 100;
constexpr int64_t kMissingCost = 255;

using Places = std::vector<size_t>;  // of zones in the object's list

struct ChosenZones {
  Places places;
  bool nearest = false;
};

// All combinations of `count` of `total`, in lexical order.
std::vector<Places> Combinations(size_t total, size_t count) {
  std::vector<Places> all;
  Places places(count);
  for (size_t i = 0; i < count; ++i)
    places[i] = i;
  while (true) {
    all.push_back(places);
    size_t last = count;
    while (last > 0 && places[last - 1] == total - count + last - 1)
      --last;
    if (last == 0) return all;
    ++places[last - 1];
    for (size_t i = last; i < count; ++i)
      places[i] = places[i - 1] + 1;
  }
}

// All pairs, both ways, with each zone's cost to itself. The sum compares as the average does, as
// long as the number of zones is the same.
int64_t CostOf(const TopologyView& topology, const Places& places) {
  int64_t sum = 0;
  for (const size_t from : places) {
    for (const size_t to : places) {
      const auto& costs = topology.zones[from].costs;
      const auto cost = costs.find(topology.zones[to].id);
      sum += cost == costs.end() ? kMissingCost : cost->second;
    }
  }
  return sum;
}

bool CombinationFits(const TopologyView& topology, const Places& places,
                     const ResourceList& requests) {
  for (const auto& [resource, quantity] : requests) {
    ExactQuantity sum;
    for (const size_t place : places) {
      const ResourceList& available = topology.zones[place].available;
      const auto found = available.find(resource);
      if (found == available.end()) return false;
      sum += found->second;
    }
    if (sum < quantity) return false;
  }
  return true;
}

// The fewest zones that have it together, the nearest of as many.
std::optional<ChosenZones> Choose(const TopologyView& topology, const ResourceList& requests) {
  for (size_t count = 1; count <= topology.zones.size(); ++count) {
    int64_t least = std::numeric_limits<int64_t>::max();
    int64_t chosen_cost = std::numeric_limits<int64_t>::max();
    std::optional<ChosenZones> chosen;
    for (Places& places : Combinations(topology.zones.size(), count)) {
      const int64_t cost = CostOf(topology, places);
      least = std::min(least, cost);
      if (cost >= chosen_cost || !CombinationFits(topology, places, requests)) continue;
      chosen_cost = cost;
      chosen = ChosenZones{std::move(places), false};
    }
    if (!chosen) continue;
    chosen->nearest = chosen_cost == least;
    return chosen;
  }
  return std::nullopt;
}

// As much as possible from the first zone, the rest from the next.
void SubtractFrom(TopologyView& topology, const Places& places, const ResourceList& requests) {
  for (const auto& [resource, quantity] : requests) {
    ExactQuantity rest = quantity;
    for (const size_t place : places) {
      const auto available = topology.zones[place].available.find(resource);
      if (available == topology.zones[place].available.end()) continue;
      const ExactQuantity taken = std::min(rest, available->second);
      available->second -= taken;
      rest -= taken;
    }
  }
}

bool InNoZone(const TopologyView& topology, const ResourceList& requests) {
  return std::all_of(requests.begin(), requests.end(), [&](const auto& request) {
    return std::none_of(topology.zones.begin(), topology.zones.end(), [&](const ZoneView& zone) {
      return zone.available.contains(request.first);
    });
  });
}

}  // namespace

int LeastNumaNodesScore(const SchedulerNode& node, const PodView& pod) {
  if (pod.qos != PodQos::kGuaranteed) return kBestScore;
  if (node.topology == nullptr || !node.fresh) return 0;
  TopologyView topology = *node.topology;
  std::vector<ResourceList> lists;
  if (topology.scope == ManagerScope::kPod) {
    lists.push_back(pod.effective);
  } else {
    for (const SchedulerContainer& container : pod.containers)
      lists.push_back(container.requests);
  }
  size_t most = 0;
  bool nearest = true;
  for (const ResourceList& requests : lists) {
    if (InNoZone(topology, requests)) continue;
    const std::optional<ChosenZones> chosen = Choose(topology, requests);
    if (!chosen) return 0;
    nearest = nearest && chosen->nearest;
    most = std::max(most, chosen->places.size());
    SubtractFrom(topology, chosen->places, requests);
  }
  if (most == 0) return kBestScore;
  const int step = kBestScore / topology.max_numa_nodes;
  return std::max(0, kBestScore - static_cast<int>(most) * step + (nearest ? step / 2 : 0));
}

}  // namespace resmgr::test
