// SPDX-License-Identifier: Apache-2.0
// Claims whose parts are in the places of their devices, where the policy would rather have them
// elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/claimed_node.h"

namespace resmgr::test {
namespace {

// The parts of a claim are in one pod, which the option would keep together.
TEST(ClaimPlacesTest, AffinityKeepsNoPartFromItsNumaNode) {
  ClaimedNode node(TopologyAwarePolicyFactory(), S2NoHt(), "0", "{ColocatePods: true}");
  for (const int second : {0, 1}) {
    const auto grant = node.Reserve(ClaimOf("claim-" + std::to_string(second),
                                            {{.device = "cpu", .node = 1 - second, .cpus = 1},
                                             {.device = "cpu", .node = second, .cpus = 1}}));
    ASSERT_TRUE(grant.ok()) << grant.status();
    EXPECT_EQ(node.machine().NodesOf(grant->cpus[0]), NodeSet{1 - second});
    EXPECT_EQ(node.machine().NodesOf(grant->cpus[1]), NodeSet{second});
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

}  // namespace
}  // namespace resmgr::test
