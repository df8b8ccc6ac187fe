// SPDX-License-Identifier: Apache-2.0
#include "pkg/schedview/scheduler_view.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/kube/pod_fingerprint.h"
#include "pkg/kube/quantity.h"
#include "pkg/kube/report_limits.h"
#include "pkg/model/container_facts.h"
#include "pkg/schedview/placeable.h"

namespace resmgr {
namespace {

using cri_resmgr::v1::TopologyAmount;
using cri_resmgr::v1::TopologyPod;
using cri_resmgr::v1::TopologyPool;
using cri_resmgr::v1::TopologyZone;

constexpr std::string_view kHugePages = "hugepages-";
constexpr size_t kLongestViewName = 253;  // bytes
// Limit in bytes of what one container counts for: pods may state any number, and no node has more.
// The sums do not overflow then.
constexpr int64_t kMostHeld = int64_t{1} << 48;

std::vector<const NumaNode*> ViewedNodes(const Machine& machine) {
  std::vector<const NumaNode*> nodes;
  for (const NumaNode& node : machine.nodes())
    if (!node.cpus.empty() && std::ssize(nodes) < kMostViewZones) nodes.push_back(&node);
  return nodes;
}

// "hugepages-2Mi" for pages of 2^21 bytes.
std::string HugePagesResource(Bytes size) {
  const StatusOr<std::string> quantity = CanonicalQuantity(fmt::format("{}Ki", size.value / 1024));
  return fmt::format("{}{}", kHugePages, quantity.ok() ? *quantity : "0");
}

// For each NUMA node and resource name, the memory that is requested by containers bound to the
// node.
using HeldMemory = std::map<int, std::map<std::string, int64_t>>;

// The memory of a container on several nodes is divided evenly, since only the kernel knows where
// it is.
HeldMemory MemoryHeld(const Snapshot& snapshot) {
  HeldMemory held;
  snapshot.ForEachContainer([&held](const Pod& pod, const Container& container) {
    const Placement& placement = container.placement;
    const NodeSet nodes = placement.mems.value_or(placement.counted_mems);
    if (container.state == ContainerState::kExited || nodes.empty()) return;
    std::map<std::string, int64_t> wanted;
    for (const auto& [name, amount] : OtherResources(pod, container))
      if (name.starts_with(kHugePages)) wanted[name] = amount;
    wanted["memory"] = container.requirements.memory_request.value;
    for (const auto& [name, stated] : wanted) {
      const int64_t amount = std::clamp<int64_t>(stated, 0, kMostHeld);
      for (const int node : nodes)
        held[node][name] += (amount + nodes.size() - 1) / nodes.size();
    }
  });
  return held;
}

void AddAmount(const std::string& name, int64_t capacity, int64_t allocatable, int64_t available,
               TopologyZone& zone) {
  TopologyAmount& amount = *zone.add_amounts();
  amount.set_name(name);
  amount.set_capacity(capacity);
  amount.set_allocatable(allocatable);
  amount.set_available(available);
}

void AddMemoryAmount(const std::string& name, Bytes all, const HeldMemory& held, int node,
                     TopologyZone& zone) {
  int64_t taken = 0;
  const auto of_node = held.find(node);
  if (of_node != held.end()) {
    const auto found = of_node->second.find(name);
    if (found != of_node->second.end()) taken = found->second;
  }
  AddAmount(name, all.value, all.value, std::max<int64_t>(0, all.value - taken), zone);
}

void AddMemory(const NumaNode& node, const HeldMemory& held, TopologyZone& zone) {
  if (!node.allowed) return;
  AddMemoryAmount("memory", node.OrdinaryMemory(), held, node.id, zone);
  for (const HugePages& pages : node.huge_pages) {
    if (pages.count == 0) continue;
    AddMemoryAmount(HugePagesResource(pages.size), pages.Total(), held, node.id, zone);
  }
}

void AddDistances(const Machine& machine, const NumaNode& from,
                  const std::vector<const NumaNode*>& nodes, TopologyZone& zone) {
  for (const NumaNode* const to : nodes)
    zone.add_distances(from.distances[static_cast<size_t>(to - machine.nodes().data())]);
}

// Adds Guaranteed pods of which the runtime has containers, unless these are all known to be init
// containers.
void AddCountedPods(const Snapshot& snapshot, SchedulerView& view) {
  std::set<PodName> pods;
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    if (pod.qos != QosClass::kGuaranteed) return;
    if (RoleOf(snapshot, pod, container) == ContainerRole::kInit) return;
    pods.insert({pod.namespace_name, pod.name});
  });
  for (const PodName& pod : pods) {
    TopologyPod& added = *view.add_pods();
    added.set_pod_namespace(pod.namespace_name);
    added.set_pod(pod.name);
  }
}

}  // namespace

void AddViewPools(const Policy& policy, const Snapshot& snapshot, SchedulerView& view) {
  std::set<std::string> names;
  for (const Zone& zone : policy.Zones(snapshot)) {
    if (view.pools_size() == kMostViewPools) break;
    // The names of balloon types may be any text.
    const std::string name = Printable(zone.name, kLongestViewName);
    if (zone.cpus.empty() || !names.insert(name).second) continue;
    TopologyPool& pool = *view.add_pools();
    pool.set_name(name);
    pool.set_cpus(zone.cpus.ToString());
    pool.set_exclusive(zone.exclusive.ToString());
  }
}

SchedulerView MakeSchedulerView(const Machine& machine, const Policy& policy,
                                const Snapshot& snapshot, bool alignment_refuses) {
  const std::vector<const NumaNode*> nodes = ViewedNodes(machine);
  const CpuSet allocatable = AllocatableCpus(policy, snapshot);
  std::vector<CpuSet> zones;
  zones.reserve(nodes.size());
  for (const NumaNode* const node : nodes)
    zones.push_back(node->cpus & allocatable);
  const PlaceableOptions options{.threads_per_core = ThreadsPerCore(machine)};
  const std::vector<int> placeable = PlaceableCpus(policy, snapshot, zones, options);
  const CpuSet exclusive = ExclusiveCpus(policy, snapshot);
  const HeldMemory held = MemoryHeld(snapshot);
  SchedulerView view;
  view.set_refuses(alignment_refuses && RefusesToSplit(policy, zones, options));
  for (size_t at = 0; at < nodes.size(); ++at) {
    TopologyZone& zone = *view.add_zones();
    zone.set_numa_id(nodes[at]->id);
    AddDistances(machine, *nodes[at], nodes, zone);
    zone.set_cpus(zones[at].ToString());
    zone.set_exclusive((zones[at] & exclusive).ToString());
    AddAmount("cpu", nodes[at]->cpus.size(), zones[at].size(), placeable[at], zone);
    AddMemory(*nodes[at], held, zone);
  }
  AddCountedPods(snapshot, view);
  return view;
}

}  // namespace resmgr
