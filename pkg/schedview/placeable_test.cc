// SPDX-License-Identifier: Apache-2.0
#include "pkg/schedview/placeable.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/claimed_node.h"
#include "test/integration/brain/policy_node.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using testing::ElementsAre;

// Two NUMA nodes of eight CPUs each, 0-7 and 8-15.
Machine TwoNodes(int threads = 1) {
  return test::MakeMachine(
      {.packages = 2, .cores = 8 / threads, .threads = threads, .siblings_apart = false});
}

std::vector<CpuSet> ZonesOf(test::PolicyNode& node) {
  const CpuSet allocatable = AllocatableCpus(node.policy(), node.snapshot());
  std::vector<CpuSet> zones;
  for (const NumaNode& one : node.machine().nodes())
    zones.push_back(one.cpus & allocatable);
  return zones;
}

std::vector<int> Placeable(test::PolicyNode& node, const PlaceableOptions& options = {}) {
  return PlaceableCpus(node.policy(), node.snapshot(), ZonesOf(node), options);
}

TEST(PlaceableCpusTest, AnIdleNodeHasAllButItsReservedCpus) {
  test::PolicyNode node(StaticPolicyFactory(), TwoNodes(), "0", "");
  EXPECT_THAT(Placeable(node), ElementsAre(7, 8));
}

TEST(PlaceableCpusTest, ExclusiveCpusOfOthersAreGone) {
  test::PolicyNode node(StaticPolicyFactory(), TwoNodes(), "0", "");
  ASSERT_TRUE(node.Create("a", QosClass::kGuaranteed, 8000).ok());
  EXPECT_THAT(Placeable(node), ElementsAre(7, 0));
  ASSERT_TRUE(node.Create("b", QosClass::kGuaranteed, 7000).ok());
  EXPECT_THAT(Placeable(node), ElementsAre(0, 0));
}

TEST(PlaceableCpusTest, CpusOfClaimsAreGone) {
  test::ClaimedNode node(StaticPolicyFactory(), TwoNodes(), "0", "{Alignment: numa}");
  ASSERT_TRUE(node.Reserve(test::ClaimOf("a", {{.node = 1, .cpus = 5}})).ok());
  const std::vector<CpuSet> zones = {test::Cpus("1-7"), test::Cpus("8-15")};
  EXPECT_THAT(PlaceableCpus(node.policy(), node.snapshot(), zones, {}), ElementsAre(7, 3));
  EXPECT_TRUE(RefusesToSplit(node.policy(), zones, {}));
  ASSERT_TRUE(node.CreateCarrier("c", {"a"}).ok());
  EXPECT_THAT(PlaceableCpus(node.policy(), node.snapshot(), zones, {}), ElementsAre(7, 3));
}

// The policy keeps a CPU for shared containers, wherever they ran before.
TEST(PlaceableCpusTest, TheLastSharedCpuIsNotPlaceable) {
  test::PolicyNode node(StaticPlusPolicyFactory(), TwoNodes(), "", "");
  ASSERT_TRUE(node.Create("shares", QosClass::kBurstable, 500).ok());
  const std::vector<int> placeable = Placeable(node);
  EXPECT_EQ(placeable[0] + placeable[1], 15);
}

TEST(PlaceableCpusTest, WholeCoresComeInMultiplesOfTheirThreads) {
  test::PolicyNode node(StaticPolicyFactory(), TwoNodes(2), "0",
                        "{Options: {full-pcpus-only: true}}");
  EXPECT_THAT(Placeable(node, {.threads_per_core = 2}), ElementsAre(6, 8));
}

TEST(PlaceableCpusTest, AskingChangesNothing) {
  test::PolicyNode node(StaticPolicyFactory(), TwoNodes(), "0", "");
  const auto key = node.Create("a", QosClass::kGuaranteed, 3000);
  ASSERT_TRUE(key.ok());
  const std::string before = node.CpusOf(*key);
  const std::vector<int> first = Placeable(node);
  EXPECT_EQ(Placeable(node), first);
  EXPECT_EQ(node.CpusOf(*key), before);
  EXPECT_EQ(node.snapshot().size(), 1U);
  EXPECT_TRUE(node.Create("b", QosClass::kGuaranteed, 1000 * first[0]).ok());
  EXPECT_TRUE(node.Create("c", QosClass::kGuaranteed, 1000 * first[1]).ok());
}

TEST(PlaceableCpusTest, WithoutTriesLeftZonesCountAsFull) {
  test::PolicyNode node(StaticPolicyFactory(), TwoNodes(), "0", "");
  EXPECT_THAT(Placeable(node, {.most_tries = 1}), ElementsAre(0, 8)) << "one try of each kind";
  EXPECT_THAT(Placeable(node, {.most_tries = 0}), ElementsAre(0, 0));
}

TEST(RefusesToSplitTest, FollowsTheAlignmentThatIsConfigured) {
  for (const auto& [section, refuses] :
       {std::pair("", false), std::pair("{Alignment: numa}", true)}) {
    test::PolicyNode node(StaticPolicyFactory(), TwoNodes(), "0", section);
    const std::vector<CpuSet> zones = ZonesOf(node);
    EXPECT_EQ(RefusesToSplit(node.policy(), zones, {}), refuses) << section;
    // The answer does not depend on the free CPUs at the moment.
    ASSERT_TRUE(node.Create("a", QosClass::kGuaranteed, 8000).ok());
    ASSERT_TRUE(node.Create("b", QosClass::kGuaranteed, 7000).ok());
    EXPECT_EQ(RefusesToSplit(node.policy(), zones, {}), refuses) << section;
  }
}

// An idle machine's CPUs are granted within one node or not at all.
TEST(RefusesToSplitTest, APolicyThatSplitsBesideOtherContainersDoesNotRefuse) {
  Machine::Parts parts = test::PartsOf(test::MakeMachine({.nodes = 2, .threads = 4}).cpus());
  parts.cpus[7].isolated = true;
  test::PolicyNode node(
      StaticPolicyFactory(), test::MakeMachine(parts), "0-1",
      "{Options: {align-by-socket: true, prefer-align-cpus-by-uncorecache: true}}");
  EXPECT_FALSE(RefusesToSplit(node.policy(), ZonesOf(node), {.threads_per_core = 4}));
}

TEST(WhatIfTest, ShowsWhatExistsAndWhatIsImagined) {
  test::TestSnapshot all;
  const ContainerKey running = all.Add("running", QosClass::kGuaranteed, 1000).key;
  all.At(running).state = ContainerState::kRunning;
  const ContainerKey exited = all.Add("exited", QosClass::kGuaranteed, 1000).key;
  all.At(exited).state = ContainerState::kExited;
  WhatIf what_if(all);
  const ContainerKey imagined = what_if.Add(2).key;
  std::vector<ContainerKey> seen;
  what_if.ForEachContainer(
      [&seen](const Pod&, const Container& container) { seen.push_back(container.key); });
  EXPECT_THAT(seen, ElementsAre(running, imagined));
  EXPECT_EQ(what_if.FindContainer(exited), nullptr);
  ASSERT_NE(what_if.FindContainer(imagined), nullptr);
  EXPECT_EQ(what_if.FindContainer(imagined)->requirements.cpu_request, MilliCpu{2000});
  EXPECT_EQ(what_if.FindPod(what_if.PodOfLast().id), &what_if.PodOfLast());
  what_if.RemoveLast();
  EXPECT_EQ(what_if.FindContainer(imagined), nullptr);
}

TEST(CpuStepTest, IsACoreWhereThePolicyGivesWholeCoresOnly) {
  const std::string whole_cores = "Options: {full-pcpus-only: true}";
  test::PolicyNode any(StaticPolicyFactory(), TwoNodes(2), "0", "");
  EXPECT_EQ(CpuStep(any.policy(), any.machine()), 1);
  test::PolicyNode whole(StaticPolicyFactory(), TwoNodes(2), "0", "{" + whole_cores + "}");
  EXPECT_EQ(CpuStep(whole.policy(), whole.machine()), 2);
  ASSERT_TRUE(whole.Create("a", QosClass::kGuaranteed, 14000).ok());
  EXPECT_EQ(CpuStep(whole.policy(), whole.machine()), 2) << "whatever is free";
  test::PolicyNode single(StaticPolicyFactory(), TwoNodes(1), "0", "{" + whole_cores + "}");
  EXPECT_EQ(CpuStep(single.policy(), single.machine()), 1);
}

// Containers without an annotation are granted any number of shared CPUs there.
TEST(CpuStepTest, IsThatOfClaimsAndNotOfContainers) {
  test::PolicyNode annotated(StaticPlusPolicyFactory(), TwoNodes(2), "0",
                             "{Options: {full-pcpus-only: true}, ExclusiveCPUs: annotated}");
  EXPECT_EQ(CpuStep(annotated.policy(), annotated.machine()), 2);
}

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

// All reported CPUs can be granted at once.
TEST(ClaimableCpusTest, TheLastSharedCpuIsNoClaims) {
  test::ClaimedNode node(StaticPlusPolicyFactory(), test::U16TwoNodes(), "", "");
  EXPECT_THAT(Claimable(node, kNodes), ElementsAre(8, 7));
}

// Containers get isolated CPUs last. If node 1 grants its ordinary CPUs first, only an isolated one
// is left there, which shared containers cannot use, so node 0 grants fewer.
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
