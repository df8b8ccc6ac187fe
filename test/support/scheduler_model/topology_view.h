// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/support/scheduler_model/exact_quantity.h"

namespace resmgr::test {

// A NodeResourceTopology (topology.node.k8s.io/v1alpha2) as the plugin NodeResourceTopologyMatch of
// scheduler-plugins reads it. Values and pure functions; an object that lacks required fields
// throws nlohmann's exceptions.

enum class ManagerPolicy { kNone, kBestEffort, kRestricted, kSingleNumaNode };
enum class ManagerScope { kContainer, kPod };

struct ZoneView {
  int id = 0;  // the number after "node-"
  ResourceList available;
  std::map<int, int64_t> costs;  // by the other zone's id
};

struct TopologyView {
  ManagerPolicy policy = ManagerPolicy::kNone;
  ManagerScope scope = ManagerScope::kContainer;
  int max_numa_nodes = 8;
  std::vector<ZoneView> zones;  // those of type Node, in the object's order
};

// The attributes topologyManagerPolicy and topologyManagerScope win over the first topology policy;
// values that the plugin does not know are ignored.
TopologyView TopologyViewOf(const nlohmann::json& object);

// One line for everything in the object that the API does not allow, contradicts itself, or makes
// the plugin compute with the wrong zone or panic.
std::vector<std::string> TopologyFaults(const nlohmann::json& object);

// The object with a pod that was reserved since it was read: the plugin's over-reserve cache
// subtracts its whole request from each zone, but not below 0.
void OverReserve(TopologyView& topology, const ResourceList& effective);

}  // namespace resmgr::test
