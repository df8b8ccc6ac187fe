// SPDX-License-Identifier: Apache-2.0
#include "agent/topology_object.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/kube/names.h"

namespace resmgr::agent {
namespace {

constexpr std::string_view kTopologyGroup = "topology.node.k8s.io/v1alpha2";
constexpr std::string_view kOwnAttributes = "cri-resource-manager.intel.com/";
// More pods than a node has by far.
constexpr size_t kMostTopologyPods = 4096;
constexpr size_t kMostTopologyAmounts = 16;
constexpr size_t kLongestPoolName = 1024;   // bytes; each of 253 may be shown as four
constexpr size_t kMostTopologyList = 8192;  // bytes of a list of CPUs
// The least that the plugin takes.
constexpr size_t kLeastMaxNodes = 2;

std::string ZoneName(size_t index) {
  return fmt::format("node-{}", index);
}

Json TopologyAttribute(std::string_view name, std::string_view value) {
  return {{"name", name}, {"value", value}};
}

Json OwnAttribute(std::string_view name, std::string_view value) {
  return TopologyAttribute(fmt::format("{}{}", kOwnAttributes, name), value);
}

Status CheckAmount(const ViewAmount& amount) {
  const bool known = amount.name == "cpu" || amount.name == "memory" ||
                     (amount.name.starts_with("hugepages-") && IsLabelKey(amount.name));
  if (!known)
    return InvalidArgument("\"{}\" is not a resource of a zone", Printable(amount.name, 64));
  const bool ordered = 0 <= amount.available && amount.available <= amount.allocatable &&
                       amount.allocatable <= amount.capacity;
  if (!ordered) {
    return InvalidArgument("{}: available {}, allocatable {} and capacity {} are not in this order",
                           amount.name, amount.available, amount.allocatable, amount.capacity);
  }
  return OkStatus();
}

Status CheckZone(const ViewZone& zone, size_t zones) {
  if (zone.numa_id < 0) return InvalidArgument("{} is not a NUMA node", zone.numa_id);
  if (zone.distances.size() != zones) {
    return InvalidArgument("NUMA node {}: {} distances to {} zones", zone.numa_id,
                           zone.distances.size(), zones);
  }
  if (zone.amounts.size() > kMostTopologyAmounts)
    return InvalidArgument("NUMA node {}: {} resources", zone.numa_id, zone.amounts.size());
  if (zone.cpus.ToString().size() > kMostTopologyList)
    return InvalidArgument("NUMA node {}: too many CPUs", zone.numa_id);
  for (const ViewAmount& amount : zone.amounts)
    RESMGR_RETURN_IF_ERROR(CheckAmount(amount));
  return OkStatus();
}

Json ZoneObject(const SchedulerView& view, size_t index) {
  const ViewZone& zone = view.zones[index];
  Json costs = Json::array();
  for (size_t to = 0; to < zone.distances.size(); ++to)
    costs.push_back({{"name", ZoneName(to)}, {"value", zone.distances[to]}});
  Json resources = Json::array();
  for (const ViewAmount& amount : zone.amounts) {
    resources.push_back({{"name", amount.name},
                         {"capacity", fmt::format("{}", amount.capacity)},
                         {"allocatable", fmt::format("{}", amount.allocatable)},
                         {"available", fmt::format("{}", amount.available)}});
  }
  Json attributes = Json::array();
  attributes.push_back(OwnAttribute("numa-id", fmt::format("{}", zone.numa_id)));
  attributes.push_back(OwnAttribute("cpus", zone.cpus.ToString()));
  attributes.push_back(OwnAttribute("exclusive", zone.exclusive.ToString()));
  return {{"name", ZoneName(index)},
          {"type", "Node"},
          {"costs", std::move(costs)},
          {"attributes", std::move(attributes)},
          {"resources", std::move(resources)}};
}

// Zones need different names, and NUMA nodes have theirs.
std::string PoolZoneName(const ViewPool& pool) {
  return fmt::format("pool:{}", pool.name);
}

Status CheckPools(const SchedulerView& view) {
  if (view.pools.size() > kMostViewPools)
    return InvalidArgument("{} pools: {} are the limit", view.pools.size(), kMostViewPools);
  std::set<std::string_view> names;
  for (const ViewPool& pool : view.pools) {
    const bool valid = !pool.name.empty() && pool.name.size() <= kLongestPoolName &&
                       Printable(pool.name, pool.name.size()) == pool.name;
    if (!valid || !names.insert(pool.name).second)
      return InvalidArgument("\"{}\" is no name of a pool, or that of two", Printable(pool.name));
  }
  return OkStatus();
}

// Without resources, which are those of the NUMA nodes.
Json PoolObject(const SchedulerView& view, const ViewPool& pool) {
  Json attributes = Json::array();
  attributes.push_back(OwnAttribute("cpus", pool.cpus.ToString()));
  attributes.push_back(OwnAttribute("exclusive", pool.exclusive.ToString()));
  Json zone = {
      {"name", PoolZoneName(pool)}, {"type", "pool"}, {"attributes", std::move(attributes)}};
  int parents = 0;
  for (size_t index = 0; index < view.zones.size(); ++index) {
    if (!pool.cpus.Intersects(view.zones[index].cpus)) continue;
    zone["parent"] = ZoneName(index);
    ++parents;
  }
  if (parents > 1) zone.erase("parent");
  return zone;
}

Json TopologyAttributes(const SchedulerView& view) {
  Json attributes = Json::array();
  attributes.push_back(TopologyAttribute("topologyManagerPolicy",
                                         view.refuses ? "single-numa-node" : "best-effort"));
  // The containers of a pod need not go where the plugin assumes each (ADR 17).
  attributes.push_back(
      TopologyAttribute("topologyManagerScope", view.refuses ? "pod" : "container"));
  attributes.push_back(
      TopologyAttribute("topologyManagerMaxNUMANodes",
                        fmt::format("{}", std::max(kLeastMaxNodes, view.zones.size()))));
  attributes.push_back(TopologyAttribute("nodeTopologyPodsFingerprint", PodFingerprint(view.pods)));
  attributes.push_back(
      TopologyAttribute("nodeTopologyPodsFingerprintMethod", "with-exclusive-resources"));
  return attributes;
}

}  // namespace

std::string TopologyPath(std::string_view node) {
  return fmt::format("/apis/{}/noderesourcetopologies/{}", kTopologyGroup, PercentEncoded(node));
}

Status CheckTopology(const SchedulerView& view) {
  if (view.zones.size() > kMostViewZones)
    return InvalidArgument("{} zones: {} are the limit", view.zones.size(), kMostViewZones);
  for (const ViewZone& zone : view.zones)
    RESMGR_RETURN_IF_ERROR(CheckZone(zone, view.zones.size()));
  RESMGR_RETURN_IF_ERROR(CheckPools(view));
  if (view.pods.size() > kMostTopologyPods)
    return InvalidArgument("{} pods: {} are the limit", view.pods.size(), kMostTopologyPods);
  for (const PodName& pod : view.pods) {
    if (!IsSubdomain(pod.namespace_name) || !IsSubdomain(pod.name)) {
      return InvalidArgument("\"{}/{}\" is not the name of a pod",
                             Printable(pod.namespace_name, 64), Printable(pod.name, 64));
    }
  }
  return OkStatus();
}

Json TopologyObject(std::string_view node, std::string_view uid, const SchedulerView& view) {
  Json zones = Json::array();
  for (size_t zone = 0; zone < view.zones.size(); ++zone)
    zones.push_back(ZoneObject(view, zone));
  for (const ViewPool& pool : view.pools)
    zones.push_back(PoolObject(view, pool));
  Json owners = Json::array();
  owners.push_back({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", uid}});
  Json policies = Json::array();
  policies.push_back(view.refuses ? "SingleNUMANodePodLevel" : "BestEffortContainerLevel");
  return {{"apiVersion", kTopologyGroup},
          {"kind", "NodeResourceTopology"},
          {"metadata", {{"name", node}, {"ownerReferences", std::move(owners)}}},
          {"topologyPolicies", std::move(policies)},
          {"attributes", TopologyAttributes(view)},
          {"zones", std::move(zones)}};
}

}  // namespace resmgr::agent
