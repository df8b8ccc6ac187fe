// SPDX-License-Identifier: Apache-2.0
#include "pkg/schedview/claimable.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/claimed_node.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using testing::ElementsAre;

const std::vector<ClaimPart> kNodes = {{.node = 0}, {.node = 1}};
const std::vector<ClaimPart> kCaches = {{.l3_of = 0}, {.l3_of = 4}, {.l3_of = 8}, {.l3_of = 12}};

std::vector<int> Claimable(test::ClaimedNode& node, const std::vector<ClaimPart>& places,
                           const ClaimableOptions& options = {}) {
  return ClaimableCpus(node.policy(), node.snapshot(), places, node.machine(), options);
}

// L3 groups 0-3, 4-7, 8-11, 12-15 in nodes 0-7 and 8-15.
TEST(ClaimableCpusTest, AnIdleNodeHasAllButItsReservedCpus) {
  test::ClaimedNode node(StaticPolicyFactory(), test::U16TwoNodes(), "0", "");
  EXPECT_THAT(Claimable(node, kNodes), ElementsAre(7, 8));
  EXPECT_THAT(Claimable(node, kCaches), ElementsAre(3, 4, 4, 4));
}

TEST(ClaimableCpusTest, CpusOfContainersAndClaimsAreGone) {
  test::ClaimedNode node(StaticPolicyFactory(), test::U16TwoNodes(), "0", "");
  ASSERT_TRUE(node.Reserve(test::ClaimOf("a", {{.cpus = 3, .l3_of = 12}})).ok());
  ASSERT_TRUE(node.Create("c", QosClass::kGuaranteed, 8000).ok());
  const std::string before = node.State();
  const std::vector<int> found = Claimable(node, kCaches);
  EXPECT_EQ(found[0] + found[1] + found[2] + found[3], 15 - 3 - 8);
  EXPECT_LE(found[3], 1);
  EXPECT_EQ(node.State(), before) << "a question has no effect";
}

// All that is told can be granted together.
TEST(ClaimableCpusTest, TheLastSharedCpuIsNoClaims) {
  test::ClaimedNode node(StaticPlusPolicyFactory(), test::U16TwoNodes(), "", "");
  EXPECT_THAT(Claimable(node, kNodes), ElementsAre(8, 7));
}

// Isolated CPUs are the last that containers get. If node 1 has granted its ordinary CPUs first,
// the isolated one that it has left cannot stay for shared containers, and node 0 grants fewer.
TEST(ClaimableCpusTest, EachOrderOfClaimsIsGranted) {
  Machine::Parts parts = test::PartsOf(test::U16TwoNodes().cpus());
  for (Cpu& cpu : parts.cpus)
    cpu.isolated = cpu.id == 3 || cpu.id == 12;
  test::ClaimedNode node(TopologyAwarePolicyFactory(), test::MakeMachine(std::move(parts)), "0",
                         "");
  const std::vector<int> found = Claimable(node, kNodes);
  EXPECT_GE(found[0] + found[1], 12);
  ASSERT_TRUE(node.Reserve(test::ClaimOf("b", {{.node = 1, .cpus = found[1]}})).ok());
  EXPECT_TRUE(node.Reserve(test::ClaimOf("a", {{.node = 0, .cpus = found[0]}})).ok());
}

// Without reserved CPUs shared containers keep one. Claims that leave isolated CPUs free took all
// ordinary ones of two nodes, so a claim for all CPUs of the third would take the last.
TEST(ClaimableCpusTest, SmallerClaimsElsewhereLeaveRoomForThoseThatAreTold) {
  Machine::Parts parts = test::PartsOf(test::U16TwoNodes().cpus());
  for (Cpu& cpu : parts.cpus)
    cpu.isolated = cpu.id == 3 || cpu.id == 12;
  for (const PolicyFactory& factory :
       {StaticPolicyFactory(), StaticPlusPolicyFactory(), TopologyAwarePolicyFactory()}) {
    test::ClaimedNode node(factory, test::MakeMachine(parts), "", "");
    const std::vector<int> found = Claimable(node, kNodes);
    EXPECT_GE(found[0] + found[1], 14) << factory.name;
    ASSERT_TRUE(
        node.Reserve(test::ClaimOf("a", {{.node = 0, .cpus = std::min(found[0], 7)}})).ok());
    const auto other = node.Reserve(test::ClaimOf("b", {{.node = 1, .cpus = found[1]}}));
    EXPECT_TRUE(other.ok()) << factory.name << ": " << other.status();
  }
}

TEST(ClaimableCpusTest, NumbersAreMultiplesOfTheStep) {
  test::ClaimedNode node(StaticPolicyFactory(), test::U16TwoNodes(), "0", "");
  EXPECT_THAT(Claimable(node, kNodes, {.step = 2}), ElementsAre(6, 8));
}

TEST(ClaimableCpusTest, PlacesBeyondTheTriesCountAsFull) {
  test::ClaimedNode node(StaticPolicyFactory(), test::U16TwoNodes(), "0", "");
  EXPECT_THAT(Claimable(node, kCaches, {.most_tries = 3})[3], 0);
}

TEST(ClaimableCpusTest, APlaceThatIsNotThereHasNone) {
  test::ClaimedNode node(StaticPolicyFactory(), test::U16TwoNodes(), "0", "");
  EXPECT_THAT(Claimable(node, {{.l3_of = 99}, {.node = 1}}), ElementsAre(0, 8));
}

}  // namespace
}  // namespace resmgr
