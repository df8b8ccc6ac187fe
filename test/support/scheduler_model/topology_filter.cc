// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "test/support/scheduler_model/topology_match.h"

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

}  // namespace resmgr::test
