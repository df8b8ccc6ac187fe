// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "test/support/scheduler_model/topology_view.h"

namespace resmgr::test {
namespace {

using nlohmann::json;
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
