// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/topology_view.h"

#include <algorithm>
#include <optional>
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

}  // namespace resmgr::test
