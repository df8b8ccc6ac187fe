// SPDX-License-Identifier: Apache-2.0
// Pods whose CPUs the plugin does not compare, and what a node does with them.
#include "test/integration/brain/scheduled_node.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "policies/balloons/balloons_policy.h"
#include "test/support/machines/machines.h"
#include "test/support/scheduler_model/topology_match.h"

namespace resmgr::test {
namespace {

using nlohmann::json;

// A pod of this QoS class with one container.
json PodWith(const std::string& name, const std::string& qos, const std::string& cpu) {
  const json container = {{"name", "app"}, {"resources", {{"requests", {{"cpu", cpu}}}}}};
  return {{"metadata", {{"namespace", "default"}, {"name", name}}},
          {"spec", {{"containers", json::array({container})}}},
          {"status", {{"qosClass", qos}}}};
}

// The default scheduler does not count the CPUs of claims, and the plugin compares no CPUs of
// Burstable pods: both send a pod to a node without idle CPUs.
TEST(ScheduledNodeTest, PodsThatThePluginDoesNotCompareAreRefusedWhereTheConfigurationSaysSo) {
  for (const auto& [section, refuses] :
       {std::pair("", false), std::pair("{whenShort: refuse}", true),
        std::pair("{whenShort: refuse, balloonTypes: [{name: default, preferNewBalloons: true}]}",
                  true)}) {
    SCOPED_TRACE(section);
    ScheduledNode node(BalloonsPolicyFactory(), MakeMachine({.cores = 12, .threads = 2}), "0",
                       section, {.name = "cpu.cri-resmgr.intel.com"}, true);
    ASSERT_TRUE(node.Reserve(ClaimOf("claim", {{.node = 0, .cpus = 11}})).ok());
    TopologyView topology = TopologyViewOf(node.Publish().topology);
    topology.policy = ManagerPolicy::kSingleNumaNode;
    EXPECT_EQ(topology.zones.at(0).available.at("cpu"), ExactQuantity(12));
    const json whole = PodWith("whole", "Guaranteed", "12");
    node.Start(whole, false);
    OverReserve(topology, PodViewOf(whole).effective);
    const SchedulerNode seen{
        .allocatable = node.allocatable(), .topology = &topology, .fresh = true};
    const PodView burstable = PodViewOf(PodWith("burstable", "Burstable", "950m"));
    EXPECT_EQ(FilterByTopology(seen, burstable).verdict, FilterVerdict::kPasses);
    EXPECT_TRUE(node.HasRoomFor(burstable));
    EXPECT_EQ(FilterByTopology(seen, AsCompared(burstable)).verdict, FilterVerdict::kUnschedulable);
    EXPECT_EQ(node.Create("burstable", QosClass::kBurstable, 950).ok(), !refuses);
    // A balloon takes those without requests in any case.
    EXPECT_TRUE(node.Create("best-effort", QosClass::kBestEffort, 0).ok());
  }
}

}  // namespace
}  // namespace resmgr::test
