// SPDX-License-Identifier: Apache-2.0
// Pods whose CPUs the plugin does not compare, and what a node does with them.
#include "test/integration/brain/scheduled_node.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/allocator/alignment.h"
#include "pkg/schedview/placeable.h"
#include "pkg/schedview/scheduler_view.h"
#include "policies/balloons/balloons_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/claimed_node.h"
#include "test/support/machines/machines.h"
#include "test/support/scheduler_model/topology_match.h"
#include "test/support/status_matchers.h"

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

// Claims whose parts are in the places of their devices, where the policy would rather have them
// elsewhere.

// The parts of a claim are in one pod, which the option would keep together.
TEST(ClaimPlacesTest, AffinityKeepsNoPartFromItsNumaNode) {
  ClaimedNode node(TopologyAwarePolicyFactory(), S2NoHt(), "0", "{ColocatePods: true}");
  for (const int second : {0, 1}) {
    const auto grant = Must(node.Reserve(ClaimOf("claim-" + std::to_string(second),
                                                 {{.device = "cpu", .node = 1 - second, .cpus = 1},
                                                  {.device = "cpu", .node = second, .cpus = 1}})));
    EXPECT_EQ(node.machine().NodesOf(grant.cpus[0]), NodeSet{1 - second});
    EXPECT_EQ(node.machine().NodesOf(grant.cpus[1]), NodeSet{second});
  }
}

// Static takes CPUs of node 0 by itself.
TEST(ClaimPlacesTest, TheReasonTellsOfThePlaceAndOfNoEarlierLife) {
  for (const PolicyFactory& factory : {StaticPolicyFactory(), TopologyAwarePolicyFactory()}) {
    ClaimedNode node(factory, S2NoHt(), "0", "{}");
    ASSERT_TRUE(node.Reserve(ClaimOf("a", {{.device = "cpu", .node = 1, .cpus = 2}})).ok());
    const Container& part = node.policy().held().all().front().parts.front();
    EXPECT_THAT(part.placement.reason, testing::Not(testing::HasSubstr("it was before")))
        << factory.name;
    if (factory.name == "topology-aware") continue;
    EXPECT_THAT(part.placement.reason, testing::HasSubstr("in the place that it asks for"));
    EXPECT_THAT(node.policy().Explain(part.key),
                testing::Contains(testing::HasSubstr("the place that it asks for: ")));
  }
}

// NUMA node 0 with the caches 0-3 and 4-7, and node 1 with one cache of eight CPUs.
Machine UnevenCaches() {
  std::vector<Cpu> cpus;
  for (int id = 0; id < 16; ++id) {
    const int node = id / 8;
    cpus.push_back({.id = id,
                    .core = id,
                    .l3 = node == 0 ? id / 4 : 2,
                    .numa = node,
                    .package = node,
                    .online = true});
  }
  return MakeMachine(PartsOf(std::move(cpus)));
}

// A cache of another node does not count, even if the part fits into no other one.
TEST(ClaimPlacesTest, APartIsInOneCacheOfItsNodeWhereThePolicyAsksForOneCache) {
  for (const PolicyFactory& factory : {StaticPolicyFactory(), StaticPlusPolicyFactory()}) {
    ClaimedNode node(factory, UnevenCaches(), "0", "{Alignment: l3}");
    const std::vector<ClaimPart> places = {{.node = 0}, {.node = 1}};
    EXPECT_THAT(ClaimableCpus(node.policy(), node.snapshot(), places, node.machine(), {.step = 1}),
                testing::ElementsAre(4, 8))
        << factory.name;
    EXPECT_FALSE(node.Reserve(ClaimOf("a", {{.node = 0, .cpus = 6}})).ok()) << factory.name;
    ASSERT_TRUE(node.Reserve(ClaimOf("b", {{.node = 1, .cpus = 5}})).ok()) << factory.name;
    // Three CPUs are left in node 1, which are the tightest place.
    const StatusOr<ClaimGrant> grant = node.Reserve(ClaimOf("c", {{.node = 0, .cpus = 3}}));
    ASSERT_TRUE(grant.ok()) << factory.name << ": " << grant.status();
    EXPECT_TRUE(AlignedPlaces(node.machine()).IsAligned(Alignment::kL3, grant->All()))
        << factory.name << ": " << grant->All().ToString();
  }
}

// Rows of the acceptance table of NodeResourceTopology that need other policies than static ones.

// Row N5: a policy that keeps CPUs for the requests of shared containers grants no others.
TEST(SchedulerRowsTest, RequestsOfSharedContainersAreNotAvailable) {
  ClaimedNode node(TopologyAwarePolicyFactory(), U16TwoNodes(), "0", "");
  Must(node.Create("shared", QosClass::kBurstable, 2500));
  const SchedulerView view =
      MakeSchedulerView(node.machine(), node.policy(), node.snapshot(), false);
  std::vector<int64_t> kept;
  for (const auto& zone : view.zones())
    kept.push_back(zone.amounts(0).allocatable() - zone.amounts(0).available());
  EXPECT_THAT(kept, testing::UnorderedElementsAre(3, 0));
}

}  // namespace
}  // namespace resmgr::test
