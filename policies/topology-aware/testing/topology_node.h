// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/policy_node.h"

namespace resmgr::test {

// A node under the topology-aware policy, for tests.
class TopologyNode : public PolicyNode {
 public:
  explicit TopologyNode(Machine machine, std::string_view reserved = "0",
                        std::string_view section = "")
      : PolicyNode(TopologyAwarePolicyFactory(), std::move(machine), reserved, section) {}

  // A container whose limit is its request; it may be changed before Place.
  ContainerKey Add(std::string_view name, QosClass qos, int64_t milli_cpu) {
    Container& container = snapshot().Add(name, qos, milli_cpu);
    container.requirements.cpu_limit = container.requirements.cpu_request;
    return container.key;
  }
  void Annotate(ContainerKey key, const std::string& annotation, std::string_view value) {
    snapshot().PodOf(key).annotations.Set(annotation + ".resource-policy.nri.io",
                                          std::string(value));
  }
  // The container must be admitted.
  ContainerKey Run(std::string_view name, QosClass qos, int64_t milli_cpu) {
    const ContainerKey key = Add(name, qos, milli_cpu);
    const Status status = Place(key).status();
    EXPECT_TRUE(status.ok()) << status;
    return key;
  }
  Container& ContainerOf(ContainerKey key) { return snapshot().At(key); }
};

}  // namespace resmgr::test
