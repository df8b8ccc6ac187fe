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
using Node = test::StaticNode;
using testing::HasSubstr;

using enum QosClass;

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

}  // namespace
}  // namespace resmgr
