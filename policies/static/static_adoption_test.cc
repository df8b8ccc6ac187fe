// SPDX-License-Identifier: Apache-2.0
// The static policy takes over running containers.
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/static/testing/static_node.h"

namespace resmgr {
namespace {

using test::Cpus;
using testing::HasSubstr;
using enum QosClass;

using Node = test::StaticNode;

TEST(StaticAdoptionTest, AdoptsWhatRunsWhereItRuns) {
  Node node(test::S1Ht());
  Container& kept = node.snapshot().Add("kept", kGuaranteed, 2000);
  kept.placement.cpus = Cpus("3,6");  // CPUs that the policy would not choose
  Container& shared = node.snapshot().Add("shared", kBurstable, 100);
  shared.placement.cpus = Cpus("0-2,4-5,7");
  const Plan plan = node.Reconcile();
  EXPECT_EQ(node.ExclusiveOf(kept.key), "3,6");
  EXPECT_EQ(node.CpusOf(shared.key), "0-2,4-5,7");
  EXPECT_EQ(plan.changes.size(), 2u) << "both learn their pool";
  EXPECT_TRUE(node.Reconcile().changes.empty()) << "and nothing changes any more";
}

TEST(StaticAdoptionTest, PlacesAnewOnlyWhatIsNotLegal) {
  Node node(test::S1Ht());
  Container& first = node.snapshot().Add("first", kGuaranteed, 2000);
  first.placement.cpus = Cpus("2,6");
  Container& twice = node.snapshot().Add("twice", kGuaranteed, 2000);
  twice.placement.cpus = Cpus("6-7");
  Container& on_reserved = node.snapshot().Add("on-reserved", kGuaranteed, 1000);
  on_reserved.placement.cpus = Cpus("0");
  Container& everywhere = node.snapshot().Add("everywhere", kGuaranteed, 1000);
  node.Reconcile();
  EXPECT_EQ(node.ExclusiveOf(first.key), "2,6");
  EXPECT_EQ(node.ExclusiveOf(twice.key).size(), 3u);
  EXPECT_FALSE(node.PlacementOf(twice.key).exclusive.Intersects(Cpus("0,2,6")));
  EXPECT_EQ(node.PlacementOf(on_reserved.key).exclusive.size(), 1);
  EXPECT_EQ(node.PlacementOf(everywhere.key).exclusive.size(), 1);
  EXPECT_FALSE(node.PlacementOf(on_reserved.key).exclusive.Contains(0));
}

TEST(StaticAdoptionTest, ARunningContainerWithoutRoomShares) {
  Node node(test::S1Ht(), "0-5");
  Container& two = node.snapshot().Add("two", kGuaranteed, 2000);
  Container& three = node.snapshot().Add("three", kGuaranteed, 3000);
  node.Reconcile();
  EXPECT_EQ(node.ExclusiveOf(two.key), "6-7");
  EXPECT_EQ(node.CpusOf(three.key), "0-5");
  EXPECT_EQ(node.PlacementOf(three.key).reason,
            "shared for want of room: needs 3 exclusive CPUs, 0 of 8 free");
  EXPECT_TRUE(node.Reconcile().changes.empty());
}

// A restart, a reconnect and the same configuration again each create a new policy that takes over.
TEST(StaticAdoptionTest, CpusThatBecomeFreeMoveNoContainerUntilARebalance) {
  for (const std::string_view section : {"", "{Options: {strict-cpu-reservation: true}}"}) {
    Node node(test::S1Ht(), "0", section);
    const ContainerKey five = node.snapshot().Add("five", kGuaranteed, 5000).key;
    const ContainerKey three = node.snapshot().Add("three", kGuaranteed, 3000).key;
    const ContainerKey web = node.snapshot().Add("web", kBurstable, 100).key;
    node.Reconcile();
    ASSERT_TRUE(node.PlacementOf(three).exclusive.empty());
    node.Remove(five);
    const std::string shared = node.CpusOf(three);
    EXPECT_EQ(node.CpusOf(web), shared);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(node.Reconcile().empty());
      node.RestartPolicy();
      EXPECT_TRUE(node.Reconcile().empty());
      EXPECT_EQ(node.CpusOf(three), shared);
    }
    node.Rebalance();
    EXPECT_EQ(node.PlacementOf(three).exclusive.size(), 3);
    EXPECT_EQ(node.PlacementOf(three).cpus, node.PlacementOf(three).exclusive);
    EXPECT_FALSE(node.PlacementOf(web).cpus->Intersects(node.PlacementOf(three).exclusive));
    EXPECT_TRUE(node.Rebalance().empty()) << "once is enough";
    EXPECT_TRUE(node.Reconcile().empty());
  }
}

TEST(StaticAdoptionTest, CpusThatBecomeFreeMoveNoContainerWithoutSavedState) {
  for (const std::string_view section : {"", "{Options: {strict-cpu-reservation: true}}"}) {
    Node node(test::S1Ht(), "0", section);
    const ContainerKey four = node.snapshot().Add("four", kGuaranteed, 4000).key;
    const ContainerKey one = node.snapshot().Add("one", kGuaranteed, 1000).key;
    const ContainerKey three = node.snapshot().Add("three", kGuaranteed, 3000).key;
    node.Reconcile();
    ASSERT_TRUE(node.PlacementOf(three).exclusive.empty());
    node.Remove(four);
    const std::string shared = node.CpusOf(three);
    const std::string own = node.CpusOf(one);
    node.ForgetDecisions();
    node.Reconcile();
    EXPECT_EQ(node.CpusOf(three), shared);
    EXPECT_EQ(node.CpusOf(one), own);
    EXPECT_EQ(node.ExclusiveOf(one), own);
    node.Rebalance();
    EXPECT_EQ(node.PlacementOf(three).exclusive.size(), 3);
  }
}

TEST(StaticAdoptionTest, AContainerWithFewerCpusThanItAsksForGetsMoreByARebalanceOnly) {
  Node node(test::S1Ht(), "0");
  const ContainerKey other = *node.Create("other", kGuaranteed, 5000);
  Container& few = node.snapshot().Add("few", kGuaranteed, 4000);
  const CpuSet two = Cpus("1-7") - node.PlacementOf(other).exclusive;
  few.placement.cpus = few.placement.exclusive = two;
  node.Reconcile();
  ASSERT_EQ(node.PlacementOf(few.key).exclusive, two) << "there are no more";
  EXPECT_THAT(node.PlacementOf(few.key).reason, HasSubstr("fewer than it asks for"));
  EXPECT_TRUE(node.Resize(few.key, 4000).ok()) << "an update of something else";
  EXPECT_EQ(node.PlacementOf(few.key).exclusive, two);
  node.Remove(other);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(node.Reconcile().empty());
    node.RestartPolicy();
    EXPECT_TRUE(node.Reconcile().empty());
  }
  node.Rebalance();
  EXPECT_EQ(node.PlacementOf(few.key).exclusive.size(), 4);
  EXPECT_TRUE(two.IsSubsetOf(node.PlacementOf(few.key).exclusive));
  EXPECT_TRUE(node.Rebalance().empty());
}

TEST(StaticAdoptionTest, AContainerThatAsksForWhatItHasWantsNoMore) {
  Node node(test::S1Ht(), "0");
  const ContainerKey other = *node.Create("other", kGuaranteed, 5000);
  Container& few = node.snapshot().Add("few", kGuaranteed, 4000);
  const CpuSet two = Cpus("1-7") - node.PlacementOf(other).exclusive;
  few.placement.cpus = few.placement.exclusive = two;
  node.Reconcile();
  ASSERT_EQ(node.PlacementOf(few.key).exclusive, two);
  ASSERT_TRUE(node.Resize(few.key, 2000).ok());
  EXPECT_FALSE(node.Resize(few.key, 3000).ok()) << "more than before, and there is no room";
  EXPECT_EQ(node.PlacementOf(few.key).exclusive, two);
}

// It is the sole user of as many CPUs as it requests by coincidence; they are not exclusive.
TEST(StaticAdoptionTest, AContainerThatSharesForWantOfRoomContinuesToShare) {
  Node node(test::S1Ht(), "0-4");
  Container& two = node.snapshot().Add("two", kGuaranteed, 2000);
  two.placement.cpus = Cpus("6-7");
  two.placement.pool = "shared";
  two.placement.reason = "shared for want of room: needs 2 exclusive CPUs, 1 of 8 free";
  node.Reconcile();
  EXPECT_TRUE(node.PlacementOf(two.key).exclusive.empty());
}

// In-place resizes (KEP-1287) under the static policy.

TEST(StaticResizeTest, GrowingKeepsTheCpusAndAddsNearOnes) {
  Node node(test::M80(), "0");
  const ContainerKey web = *node.Create("web", kGuaranteed, 4000);
  const CpuSet before = node.PlacementOf(web).exclusive;
  const ContainerKey shared = *node.Create("shared", kBurstable, 100);
  ASSERT_TRUE(node.Resize(web, 6000).ok());
  const CpuSet after = node.PlacementOf(web).exclusive;
  EXPECT_EQ(after.size(), 6);
  EXPECT_TRUE(before.IsSubsetOf(after));
  EXPECT_EQ(test::M80().NodesOf(after), test::M80().NodesOf(before));
  EXPECT_FALSE(Cpus(node.CpusOf(shared)).Intersects(after));
}

TEST(StaticResizeTest, ShrinkingKeepsAPart) {
  Node node(test::S1Ht());
  const ContainerKey web = *node.Create("web", kGuaranteed, 4000);
  const CpuSet before = node.PlacementOf(web).exclusive;
  const ContainerKey shared = *node.Create("shared", kBurstable, 100);
  ASSERT_TRUE(node.Resize(web, 2000).ok());
  const CpuSet after = node.PlacementOf(web).exclusive;
  EXPECT_EQ(after.size(), 2);
  EXPECT_TRUE(after.IsSubsetOf(before));
  EXPECT_EQ(node.CpusOf(shared), (Cpus("0-7") - after).ToString());
}

TEST(StaticResizeTest, ResizingAcrossTheRuleMovesBetweenSharedAndExclusive) {
  Node node(test::S1Ht());
  const ContainerKey web = *node.Create("web", kGuaranteed, 2000);
  ASSERT_TRUE(node.Resize(web, 1500).ok());
  EXPECT_EQ(node.CpusOf(web), "0-7");
  EXPECT_EQ(node.ExclusiveOf(web), "");
  EXPECT_FALSE(node.PlacementOf(web).cpu_quota.has_value());
  ASSERT_TRUE(node.Resize(web, 3000).ok());
  EXPECT_EQ(node.PlacementOf(web).exclusive.size(), 3);
}

TEST(StaticResizeTest, ARefusedResizeChangesNothing) {
  Node node(test::S1Ht());
  const ContainerKey web = *node.Create("web", kGuaranteed, 2000);
  ASSERT_TRUE(node.Create("other", kGuaranteed, 3000).ok());
  const std::string before = node.CpusOf(web);
  const Status refusal = node.Resize(web, 5000);
  EXPECT_EQ(refusal.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(refusal)),
              HasSubstr("needs 3 more exclusive CPUs, 2 of 8 free: CPU 0 reserved, CPUs 2,4,6 held "
                        "by ns/other/other"));
  EXPECT_EQ(node.CpusOf(web), before);
  EXPECT_TRUE(node.Resize(web, 4000).ok());
}

TEST(StaticResizeTest, AResizeDownIsNotRefusedWhereSharingWillDo) {
  Node node(test::S1Ht(), "0");
  const ContainerKey other = *node.Create("other", kGuaranteed, 5000);
  const ContainerKey found = node.snapshot().Add("found", kGuaranteed, 6000).key;
  node.Reconcile();
  ASSERT_TRUE(node.PlacementOf(found).exclusive.empty()) << "there is no room for it";
  Status status = node.Resize(found, 4000);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(node.PlacementOf(found).reason, HasSubstr("shared for want of room: needs 4"));
  EXPECT_TRUE(node.Reconcile().empty());
  EXPECT_EQ(node.Resize(found, 5000).code(), StatusCode::kResourceExhausted) << "it asks for more";
  status = node.Resize(found, 2000);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(node.PlacementOf(found).exclusive.size(), 2) << "there is room for these";
  status = node.Resize(other, 2500);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(node.PlacementOf(other).exclusive.empty());
}

TEST(StaticResizeTest, FullCoresOnlyResizesDownToWholeCoresOrShares) {
  Node node(test::S1Ht(), "0", "{Options: {full-pcpus-only: true}}");
  const ContainerKey four = *node.Create("four", kGuaranteed, 4000);
  EXPECT_EQ(node.Resize(four, 3000).code(), StatusCode::kInvalidArgument)
      << "a new attempt of it would be refused as well";
  EXPECT_EQ(node.PlacementOf(four).exclusive.size(), 4);
  EXPECT_TRUE(node.Resize(four, 2000).ok());
  EXPECT_EQ(node.PlacementOf(four).exclusive.size(), 2);
  EXPECT_TRUE(node.Resize(four, 1500).ok());
  EXPECT_TRUE(node.PlacementOf(four).exclusive.empty());
}

TEST(StaticResizeTest, HalvesOfCoresAreGivenUpWhereOnlyWholeOnesAreGranted) {
  Node node(test::S1Ht(), "0", "{Options: {full-pcpus-only: true}}");
  Container& halves = node.snapshot().Add("halves", kGuaranteed, 4000);
  halves.placement.cpus = halves.placement.exclusive = Cpus("1-3,5");
  node.Reconcile();
  ASSERT_EQ(node.ExclusiveOf(halves.key), "1-3,5") << "of before the option was set";
  EXPECT_TRUE(node.Resize(halves.key, 2000).ok());
  EXPECT_EQ(node.ExclusiveOf(halves.key), "1,5");
  halves.placement.exclusive = Cpus("2-3");
  halves.placement.cpus = halves.placement.exclusive;
  node.Reconcile();
  ASSERT_EQ(node.ExclusiveOf(halves.key), "2-3");
  EXPECT_TRUE(node.Resize(halves.key, 0).ok());
  EXPECT_TRUE(node.PlacementOf(halves.key).exclusive.empty());
}

}  // namespace
}  // namespace resmgr
