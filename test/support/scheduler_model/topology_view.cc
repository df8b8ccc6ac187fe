// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/topology_view.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "pkg/base/parse.h"

namespace resmgr::test {
namespace {

using nlohmann::json;

constexpr int kMostNumaNodes = 1024;

struct NamedPolicy {
  std::string_view name;
  ManagerPolicy policy;
  ManagerScope scope;
};

constexpr NamedPolicy kTopologyPolicies[] = {
    {"SingleNUMANodeContainerLevel", ManagerPolicy::kSingleNumaNode, ManagerScope::kContainer},
    {"SingleNUMANodePodLevel", ManagerPolicy::kSingleNumaNode, ManagerScope::kPod},
    {"Restricted", ManagerPolicy::kRestricted, ManagerScope::kContainer},
    {"RestrictedContainerLevel", ManagerPolicy::kRestricted, ManagerScope::kContainer},
    {"RestrictedPodLevel", ManagerPolicy::kRestricted, ManagerScope::kPod},
    {"BestEffort", ManagerPolicy::kBestEffort, ManagerScope::kContainer},
    {"BestEffortContainerLevel", ManagerPolicy::kBestEffort, ManagerScope::kContainer},
    {"BestEffortPodLevel", ManagerPolicy::kBestEffort, ManagerScope::kPod},
    {"None", ManagerPolicy::kNone, ManagerScope::kContainer},
};

void ReadAttribute(TopologyView& view, const std::string& name, const std::string& value) {
  if (name == "topologyManagerPolicy") {
    if (value == "none") view.policy = ManagerPolicy::kNone;
    if (value == "best-effort") view.policy = ManagerPolicy::kBestEffort;
    if (value == "restricted") view.policy = ManagerPolicy::kRestricted;
    if (value == "single-numa-node") view.policy = ManagerPolicy::kSingleNumaNode;
  } else if (name == "topologyManagerScope") {
    if (value == "container") view.scope = ManagerScope::kContainer;
    if (value == "pod") view.scope = ManagerScope::kPod;
  } else if (name == "topologyManagerMaxNUMANodes") {
    const std::optional<uint64_t> number = ParseUint(value);
    if (number && *number > 1) {
      view.max_numa_nodes = static_cast<int>(std::min<uint64_t>(*number, kMostNumaNodes));
    }
  }
}

// N of "node-N".
std::optional<int> ZoneId(std::string_view name) {
  constexpr std::string_view kPrefix = "node-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::optional<uint64_t> id = ParseUint(name.substr(kPrefix.size()));
  if (!id || *id > 1'000'000) return std::nullopt;
  return static_cast<int>(*id);
}

using Faults = std::vector<std::string>;

constexpr size_t kMostZones = 64;

constexpr std::string_view kPolicyNames[] = {
    "SingleNUMANodeContainerLevel", "SingleNUMANodePodLevel", "Restricted",
    "RestrictedContainerLevel",     "RestrictedPodLevel",     "BestEffort",
    "BestEffortContainerLevel",     "BestEffortPodLevel",     "None",
};

bool HasText(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() && !found->get<std::string>().empty();
}

void CheckHead(const json& object, Faults& faults) {
  if (object.value("apiVersion", "") != "topology.node.k8s.io/v1alpha2") {
    faults.push_back("apiVersion");
  }
  if (object.value("kind", "") != "NodeResourceTopology") faults.push_back("kind");
  if (!HasText(object.value("metadata", json::object()), "name")) faults.push_back("no name");
  for (const json& policy : object.value("topologyPolicies", json::array())) {
    if (std::find(std::begin(kPolicyNames), std::end(kPolicyNames), policy) ==
        std::end(kPolicyNames)) {
      faults.push_back("unknown topology policy " + policy.dump());
    }
  }
}

void CheckAttributes(const json& attributes, const std::string& of, Faults& faults) {
  std::set<std::string> names;
  for (const json& attribute : attributes) {
    const auto value = attribute.find("value");
    if (!HasText(attribute, "name") || value == attribute.end() || !value->is_string()) {
      faults.push_back(of + ": attribute without name or value");
    } else if (!names.insert(attribute.at("name")).second) {
      faults.push_back(of + ": attribute " + attribute.at("name").dump() + " twice");
    }
  }
}

// An attribute with a value that the plugin would ignore.
void CheckManagerAttributes(const json& object, Faults& faults) {
  json without_attributes = object;
  without_attributes.erase("attributes");
  const TopologyView by_policies = TopologyViewOf(without_attributes);
  const TopologyView by_all = TopologyViewOf(object);
  const bool has_policies = !object.value("topologyPolicies", json::array()).empty();
  if (has_policies && (by_policies.policy != by_all.policy || by_policies.scope != by_all.scope)) {
    faults.push_back("topology policy and attributes contradict");
  }
  for (const json& attribute : object.value("attributes", json::array())) {
    const std::string name = attribute.value("name", "");
    const std::string value = attribute.value("value", "");
    const auto one_of = [&](std::initializer_list<std::string_view> values) {
      if (std::find(values.begin(), values.end(), value) == values.end()) {
        faults.push_back(name + " is " + value);
      }
    };
    if (name == "topologyManagerPolicy") {
      one_of({"none", "best-effort", "restricted", "single-numa-node"});
    } else if (name == "topologyManagerScope") {
      one_of({"container", "pod"});
    } else if (name == "topologyManagerMaxNUMANodes" &&
               value != std::to_string(by_all.max_numa_nodes)) {
      faults.push_back(name + " is " + value);
    }
  }
}

void CheckResources(const json& zone, const std::string& name, Faults& faults) {
  std::set<std::string> names;
  for (const json& resource : zone.value("resources", json::array())) {
    if (!HasText(resource, "name")) {
      faults.push_back(name + ": resource without name");
      continue;
    }
    const std::string of = name + ": " + resource.at("name").get<std::string>();
    if (!names.insert(resource.at("name")).second) faults.push_back(of + " twice");
    std::optional<ExactQuantity> quantities[3];
    const char* const keys[] = {"available", "allocatable", "capacity"};
    for (size_t i = 0; i < 3; ++i) {
      if (resource.contains(keys[i])) quantities[i] = ExactQuantity::Of(resource.at(keys[i]));
      if (!quantities[i]) faults.push_back(of + " has no quantity " + keys[i]);
    }
    if (!quantities[0] || !quantities[1] || !quantities[2]) continue;
    if (*quantities[0] < ExactQuantity()) faults.push_back(of + " is below 0");
    if (*quantities[0] > *quantities[1]) faults.push_back(of + ": available above allocatable");
    if (*quantities[1] > *quantities[2]) faults.push_back(of + ": allocatable above capacity");
  }
}

// The plugin indexes lists of zones with NUMA ids.
void CheckNumaZones(const json& object, Faults& faults) {
  const TopologyView view = TopologyViewOf(object);
  if (view.zones.size() > kMostZones) faults.push_back("more than 64 zones of type Node");
  for (size_t i = 0; i < view.zones.size(); ++i) {
    const ZoneView& zone = view.zones[i];
    const std::string name = "node-" + std::to_string(zone.id);
    if (zone.id != static_cast<int>(i)) faults.push_back(name + " at place " + std::to_string(i));
    for (size_t other = 0; other < view.zones.size(); ++other) {
      if (!zone.costs.contains(static_cast<int>(other))) {
        faults.push_back(name + ": no cost of node-" + std::to_string(other));
      }
    }
    if (zone.costs.size() > view.zones.size()) faults.push_back(name + ": costs of other zones");
  }
}

void CheckZones(const json& object, Faults& faults) {
  std::set<std::string> names;
  size_t numa_zones = 0;
  for (const json& zone : object.at("zones")) {
    if (!HasText(zone, "name") || !HasText(zone, "type")) {
      faults.push_back("zone without name or type");
      continue;
    }
    const std::string name = zone.at("name");
    if (zone.at("type") == "Node") ++numa_zones;
    if (!names.insert(name).second) faults.push_back(name + " twice");
    CheckAttributes(zone.value("attributes", json::array()), name, faults);
    CheckResources(zone, name, faults);
  }
  for (const json& zone : object.at("zones")) {
    if (zone.contains("parent") && !names.contains(zone.at("parent"))) {
      faults.push_back(zone.value("name", "") + ": parent " + zone.at("parent").dump());
    }
  }
  if (!faults.empty()) return;
  if (TopologyViewOf(object).zones.size() != numa_zones) {
    faults.push_back("zone of type Node whose name is not node-N");
  }
  CheckNumaZones(object, faults);
}

}  // namespace

TopologyView TopologyViewOf(const json& object) {
  TopologyView view;
  const json policies = object.value("topologyPolicies", json::array());
  if (!policies.empty()) {
    for (const NamedPolicy& known : kTopologyPolicies) {
      if (policies[0] != known.name) continue;
      view.policy = known.policy;
      view.scope = known.scope;
    }
  }
  for (const json& attribute : object.value("attributes", json::array())) {
    ReadAttribute(view, attribute.at("name"), attribute.at("value"));
  }
  for (const json& zone : object.at("zones")) {
    if (zone.at("type") != "Node") continue;
    const std::optional<int> id = ZoneId(zone.at("name").get_ref<const std::string&>());
    if (!id) continue;
    ZoneView& read = view.zones.emplace_back();
    read.id = *id;
    for (const json& resource : zone.value("resources", json::array())) {
      const std::optional<ExactQuantity> available = ExactQuantity::Of(resource.at("available"));
      if (available) read.available[resource.at("name")] = *available;
    }
    for (const json& cost : zone.value("costs", json::array())) {
      const std::optional<int> other = ZoneId(cost.at("name").get_ref<const std::string&>());
      if (other) read.costs[*other] = cost.at("value");
    }
  }
  return view;
}

void OverReserve(TopologyView& topology, const ResourceList& effective) {
  for (ZoneView& zone : topology.zones) {
    for (auto& [name, available] : zone.available) {
      const auto taken = effective.find(name);
      if (taken == effective.end()) continue;
      available = std::max(ExactQuantity(), available - taken->second);
    }
  }
}

Faults TopologyFaults(const json& object) {
  Faults faults;
  CheckHead(object, faults);
  if (!object.contains("zones") || !object.at("zones").is_array()) {
    faults.push_back("no zones");
    return faults;
  }
  CheckAttributes(object.value("attributes", json::array()), "object", faults);
  CheckZones(object, faults);
  if (faults.empty()) CheckManagerAttributes(object, faults);
  return faults;
}

}  // namespace resmgr::test
