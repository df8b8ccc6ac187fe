// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/topology_match.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

namespace resmgr::test {
namespace {

// The plugin's sets of NUMA ids have this many places, and the id itself is let through.
constexpr int kPlacesForIds = 64;

bool ZonesList(const TopologyView& topology, const std::string& resource) {
  return std::any_of(topology.zones.begin(), topology.zones.end(),
                     [&](const ZoneView& zone) { return zone.available.contains(resource); });
}

bool ZoneFits(const ZoneView& zone, const std::string& resource, const ExactQuantity& quantity,
              PodQos qos) {
  const auto available = zone.available.find(resource);
  if (available == zone.available.end()) return false;
  if (qos != PodQos::kGuaranteed && IsAlignedByKubelet(resource)) return true;
  return available->second >= quantity;
}

// The search for the zone of one list of requests, with the zones as earlier containers left them.
class ZoneSearch {
 public:
  ZoneSearch(const SchedulerNode& node, PodQos qos)
      : allocatable_(node.allocatable), topology_(*node.topology), qos_(qos) {}

  bool panics() const { return panics_; }

  // The lowest id whose zone has all of it.
  std::optional<int> Find(const ResourceList& requests) {
    std::vector<const ZoneView*> fitting;
    for (const ZoneView& zone : topology_.zones) {
      // Ids beyond are skipped.
      if (zone.id > kPlacesForIds) continue;
      if (zone.id == kPlacesForIds) panics_ = true;
      fitting.push_back(&zone);
    }
    for (const auto& request : requests) {
      const std::string& resource = request.first;
      if (request.second.IsZero()) continue;
      if (!allocatable_.contains(resource)) return std::nullopt;
      if (!ZonesList(topology_, resource)) {
        if (IsAlignedByKubelet(resource)) return std::nullopt;
        continue;
      }
      std::erase_if(fitting, [&](const ZoneView* zone) {
        return !ZoneFits(*zone, resource, request.second, qos_);
      });
    }
    if (fitting.empty()) return std::nullopt;
    return (*std::min_element(fitting.begin(), fitting.end(),
                              [](const auto* a, const auto* b) { return a->id < b->id; }))
        ->id;
  }

  // The id is an index into the list of zones here.
  void Subtract(int id, const ResourceList& requests) {
    if (static_cast<size_t>(id) >= topology_.zones.size()) {
      panics_ = true;
      return;
    }
    ResourceList& available = topology_.zones[static_cast<size_t>(id)].available;
    for (const auto& [resource, quantity] : requests) {
      const auto found = available.find(resource);
      if (found != available.end()) found->second -= quantity;
    }
  }

 private:
  const ResourceList& allocatable_;
  TopologyView topology_;
  PodQos qos_;
  bool panics_ = false;
};

FilterAnswer FilterContainers(const SchedulerNode& node, const PodView& pod) {
  ZoneSearch search(node, pod.qos);
  FilterAnswer answer;
  for (const SchedulerContainer& container : pod.containers) {
    const std::optional<int> zone = search.Find(container.requests);
    if (!zone && !search.panics()) {
      answer.verdict = FilterVerdict::kUnschedulable;
      answer.reason = container.kind == SchedulerContainerKind::kApp
                          ? "cannot align container"
                          : "cannot align init container";
      return answer;
    }
    if (zone && container.kind != SchedulerContainerKind::kInit) {
      search.Subtract(*zone, container.requests);
    }
    if (search.panics()) return {.verdict = FilterVerdict::kPanics, .reason = {}, .zones = {}};
    answer.zones.push_back(*zone);
  }
  return answer;
}

FilterAnswer FilterPod(const SchedulerNode& node, const PodView& pod) {
  ZoneSearch search(node, pod.qos);
  const std::optional<int> zone = search.Find(pod.effective);
  if (search.panics()) return {.verdict = FilterVerdict::kPanics, .reason = {}, .zones = {}};
  if (!zone) {
    return {.verdict = FilterVerdict::kUnschedulable, .reason = "cannot align pod", .zones = {}};
  }
  return {.verdict = FilterVerdict::kPasses, .reason = {}, .zones = {*zone}};
}

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

FilterAnswer FilterByTopology(const SchedulerNode& node, const PodView& pod) {
  if (pod.qos == PodQos::kBestEffort && !HasExtended(pod)) return {};
  if (!node.fresh) {
    return {.verdict = FilterVerdict::kUnschedulable,
            .reason = "invalid node topology data",
            .zones = {}};
  }
  if (node.topology == nullptr) return {};
  if (node.topology->policy != ManagerPolicy::kSingleNumaNode) return {};
  return node.topology->scope == ManagerScope::kPod ? FilterPod(node, pod)
                                                    : FilterContainers(node, pod);
}

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
