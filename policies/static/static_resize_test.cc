// SPDX-License-Identifier: Apache-2.0
// In-place resizes (KEP-1287) under the static policy.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/static/testing/static_node.h"

namespace resmgr {
namespace {

using test::Cpus;
using Node = test::StaticNode;
using testing::HasSubstr;

using enum QosClass;

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
