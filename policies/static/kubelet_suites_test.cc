// SPDX-License-Identifier: Apache-2.0
// The kubelet's test suites for its static policy, as far as they apply here.
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/static/static_policy.h"
#include "policies/static/testing/static_node.h"

namespace resmgr {
namespace {

using test::Cpus;
using Node = test::StaticNode;

using enum QosClass;

// The kubelet's suite StaticPolicyAdd, without cases that the allocator's tests cover. It names the
// default set's CPUs; CPU 0 is always reserved.
TEST(StaticPolicyAddTest, SingleCore) {
  Node node(test::S1Ht());
  ASSERT_TRUE(node.Create("seven", kGuaranteed, 7000).ok());
  EXPECT_EQ(node.Create("one", kGuaranteed, 1000).status().code(), StatusCode::kResourceExhausted);
  Node idle(test::S1Ht());
  EXPECT_EQ(idle.ExclusiveOf(*idle.Create("one", kGuaranteed, 1000)), "4")
      << "the sibling of the reserved CPU";
}

TEST(StaticPolicyAddTest, MultipleCores) {
  // CPUs that containers hold already are adopted.
  const auto with = [](Node& node, std::string_view held) {
    Container& container = node.snapshot().Add("held", kGuaranteed, 1000 * Cpus(held).size());
    container.placement.cpus = Cpus(held);
    node.Reconcile();
  };
  Node one_core(test::S1Ht());
  with(one_core, "2-3,6-7");
  EXPECT_EQ(one_core.ExclusiveOf(*one_core.Create("c", kGuaranteed, 2000)), "1,5");
  Node one_package(test::S2Ht());
  with(one_package, "2");
  EXPECT_EQ(one_package.ExclusiveOf(*one_package.Create("c", kGuaranteed, 6000)), "1,3,5,7,9,11");
  Node three_cores(test::S2NoHt());
  with(three_cores, "4-5");
  EXPECT_EQ(three_cores.ExclusiveOf(*three_cores.Create("c", kGuaranteed, 3000)), "1,6-7")
      << "the package where less is free comes first";
  Node four_cores(test::S2Ht());
  with(four_cores, "1,7");
  EXPECT_EQ(four_cores.ExclusiveOf(*four_cores.Create("c", kGuaranteed, 8000)), "2-5,8-11");
  EXPECT_EQ(four_cores.CpusOf(*four_cores.Create("shared", kBurstable, 1)), "0,6");
  Node package_and_core(test::S2Ht());
  with(package_and_core, "2");
  EXPECT_EQ(package_and_core.ExclusiveOf(*package_and_core.Create("c", kGuaranteed, 8000)),
            "1,3-5,7,9-11");
}

TEST(StaticPolicyAddTest, TheSameContainerKeepsItsAllocation) {
  Node node(test::S1Ht());
  const ContainerKey web = *node.Create("web", kGuaranteed, 2000);
  const std::string before = node.CpusOf(web);
  ASSERT_TRUE(node.Resize(web, 2000).ok());
  EXPECT_EQ(node.CpusOf(web), before);
  EXPECT_TRUE(node.Reconcile().changes.empty());
}

// StaticPolicyStart: states that make a kubelet refuse to start are corrected here, or are valid.
TEST(StaticPolicyStartTest, NothingThatIsFoundKeepsItFromStarting) {
  struct Case {
    std::string_view what;
    std::string_view reserved;
    std::string_view exclusive;  // CPUs of a container that requests 2
    std::string_view shared;
    std::string_view expected_exclusive;
  };
  const std::vector<Case> cases = {
      {"consistent", "0", "1-2", "0,3-7", "1-2"},
      {"reserved CPUs missing from the shared set", "0,6", "1-2", "3-5,7", "1-2"},
      {"a CPU in both sets", "0", "1-2", "0,2-7", "1-2"},
      {"a CPU in neither", "0", "1-2", "0,3-6", "1-2"},
      {"a CPU that the machine does not have", "0", "1-2", "0,3-7,12", "1-2"},
      {"an exclusive CPU that the machine does not have", "0", "2,12", "0,1,3-7", "1,5"},
  };
  for (const Case& c : cases) {
    Node node(test::S1Ht(), c.reserved);
    Container& exclusive = node.snapshot().Add("exclusive", kGuaranteed, 2000);
    exclusive.placement.cpus = Cpus(c.exclusive);
    Container& shared = node.snapshot().Add("shared", kBurstable, 100);
    shared.placement.cpus = Cpus(c.shared);
    node.Reconcile();
    EXPECT_EQ(node.ExclusiveOf(exclusive.key), c.expected_exclusive) << c.what;
    EXPECT_EQ(node.CpusOf(shared.key), (Cpus("0-7") - Cpus(c.expected_exclusive)).ToString())
        << c.what;
  }
}

TEST(StaticPolicyStartTest, WithNothingFoundEverythingIsShared) {
  Node node(test::S1Ht());
  EXPECT_TRUE(node.Reconcile().changes.empty());
  EXPECT_EQ(node.CpusOf(*node.Create("shared", kBurstable, 100)), "0-7");
}

TEST(StaticPolicyRemoveTest, GivesBackWhatWasTakenInAnyOrder) {
  Node node(test::S1Ht());
  const ContainerKey shared = *node.Create("shared", kBurstable, 100);
  const ContainerKey a = *node.Create("a", kGuaranteed, 1000);
  const ContainerKey b = *node.Create("b", kGuaranteed, 2000);
  node.Remove(a);
  EXPECT_EQ(node.CpusOf(shared), "0,2-4,6-7");
  node.Remove(b);
  EXPECT_EQ(node.CpusOf(shared), "0-7");
  const StatusOr<Plan> plan = node.policy().Release(node.snapshot(), ContainerKey{999});
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->changes.empty()) << "one that it never knew";
}

constexpr std::string_view kUncore = "{Options: {prefer-align-cpus-by-uncorecache: true}}";

TEST(StaticPolicyUncoreTest, WholeCachesThenOneThatHoldsTheRest) {
  const Machine machine =
      test::MakeMachine({.packages = 1, .nodes = 2, .l3s = 4, .cores = 16, .threads = 2});
  Node node(machine, "0,32", kUncore);
  EXPECT_EQ(node.ExclusiveOf(*node.Create("one", kGuaranteed, 8000)), "4-7,36-39");
  EXPECT_EQ(node.ExclusiveOf(*node.Create("two", kGuaranteed, 16'000)), "8-15,40-47");
  EXPECT_EQ(node.ExclusiveOf(*node.Create("small", kGuaranteed, 4000)), "1-2,33-34")
      << "part of the cache that is broken already";
  EXPECT_EQ(node.ExclusiveOf(*node.Create("node", kGuaranteed, 32'000)), "16-31,48-63");
  EXPECT_EQ(node.ExclusiveOf(*node.Create("rest", kGuaranteed, 2000)), "3,35");
}

TEST(StaticPolicyUncoreTest, OneCacheForAllIsNoReasonToRefuse) {
  // 120 cores under one cache.
  Node node(test::MakeMachine({.cores = 120, .threads = 2}), "0-1,120-121", kUncore);
  EXPECT_EQ(node.ExclusiveOf(*node.Create("six", kGuaranteed, 6000)), "2-4,122-124");
}

TEST(StaticPolicyUncoreTest, FragmentsAreUsedWhenNoCacheIsWhole) {
  Node node(test::U16(), "0,4,8,12", kUncore);
  EXPECT_EQ(node.ExclusiveOf(*node.Create("three", kGuaranteed, 3000)), "1-3");
  EXPECT_EQ(node.ExclusiveOf(*node.Create("two", kGuaranteed, 2000)), "5-6");
  EXPECT_EQ(node.PlacementOf(*node.Create("seven", kGuaranteed, 7000)).exclusive.size(), 7);
}

}  // namespace
}  // namespace resmgr
