// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/support/scheduler_model/pod_view.h"
#include "test/support/scheduler_model/topology_view.h"

namespace resmgr::test {

// Objects for tests of the model.

// A zone node-ID with these quantities available, and costs 10 to itself and 21 to `zones` others.
inline nlohmann::json SampleZone(int id, int zones, const nlohmann::json& available) {
  nlohmann::json zone = {{"name", "node-" + std::to_string(id)}, {"type", "Node"}};
  zone["costs"] = nlohmann::json::array();
  for (int other = 0; other < zones; ++other) {
    zone["costs"].push_back(
        {{"name", "node-" + std::to_string(other)}, {"value", other == id ? 10 : 21}});
  }
  zone["resources"] = nlohmann::json::array();
  for (const auto& [name, value] : available.items()) {
    zone["resources"].push_back(
        {{"name", name}, {"capacity", value}, {"allocatable", value}, {"available", value}});
  }
  return zone;
}

// Zones node-0 and so on, each with what is available there.
inline nlohmann::json SampleTopology(const std::string& policy, const std::string& scope,
                                     const std::vector<nlohmann::json>& available) {
  nlohmann::json object = {{"apiVersion", "topology.node.k8s.io/v1alpha2"},
                           {"kind", "NodeResourceTopology"},
                           {"metadata", {{"name", "worker-1"}}}};
  object["attributes"] = {{{"name", "topologyManagerPolicy"}, {"value", policy}},
                          {{"name", "topologyManagerScope"}, {"value", scope}}};
  object["zones"] = nlohmann::json::array();
  for (size_t i = 0; i < available.size(); ++i) {
    object["zones"].push_back(
        SampleZone(static_cast<int>(i), static_cast<int>(available.size()), available[i]));
  }
  return object;
}

inline SchedulerContainer SampleContainer(SchedulerContainerKind kind,
                                          const nlohmann::json& requests) {
  return {.name = "c", .kind = kind, .requests = ResourcesOf(requests)};
}

inline SchedulerContainer SampleApp(const nlohmann::json& requests) {
  return SampleContainer(SchedulerContainerKind::kApp, requests);
}

// The effective request is that of app containers alone.
inline PodView SamplePod(PodQos qos, std::vector<SchedulerContainer> containers) {
  PodView pod{.qos = qos, .containers = std::move(containers), .effective = {}};
  for (const SchedulerContainer& container : pod.containers) {
    if (container.kind != SchedulerContainerKind::kApp) continue;
    for (const auto& [name, quantity] : container.requests)
      pod.effective[name] += quantity;
  }
  return pod;
}

}  // namespace resmgr::test
