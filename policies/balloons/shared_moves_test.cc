// SPDX-License-Identifier: Apache-2.0
// Containers move between balloons of a type because of their use.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/policy/use_balance.h"
#include "policies/balloons/testing/balloons_node.h"

namespace resmgr {
namespace {

using test::BalloonsNode;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Two balloons of four CPUs each.
constexpr std::string_view kFixed =
    "balloonTypes: [{name: x, minCPUs: 4, maxCPUs: 4, minBalloons: 2, maxBalloons: 2}]";

class BalloonsSharedMovesTest : public testing::Test {
 protected:
  ContainerKey Run(BalloonsNode& node, std::string_view name, int64_t request = 500) {
    const StatusOr<ContainerKey> key = node.Run(name, {.request = request, .type = "x"});
    EXPECT_TRUE(key.ok()) << key.status();
    return key.value_or(ContainerKey());
  }
  static StatusOr<Plan> Move(BalloonsNode& node, ContainerKey key, const std::string& pool) {
    const StatusOr<Plan> plan =
        node.policy().MoveShared(node.snapshot(), std::vector<policy::PoolMove>{{key, pool}});
    if (plan.ok()) node.snapshot().Apply(*plan);
    return plan;
  }
};

TEST_F(BalloonsSharedMovesTest, AMoveAndItsReturnGiveTheStateBefore) {
  BalloonsNode node(kFixed);
  const ContainerKey a = Run(node, "a");
  const ContainerKey b = Run(node, "b");
  const std::string from = node.PoolOf(a);
  const std::string cpus = node.CpusOf(a);
  const std::vector<std::string> targets = node.policy().TargetsOf(node.snapshot(), a);
  ASSERT_THAT(targets, SizeIs(1));
  ASSERT_TRUE(Move(node, a, targets[0]).ok());
  EXPECT_EQ(node.PoolOf(a), targets[0]);
  EXPECT_NE(node.CpusOf(a), cpus);
  EXPECT_THAT(node.PlacementOf(a).reason, HasSubstr("moved by what is used"));
  ASSERT_TRUE(Move(node, a, from).ok());
  EXPECT_EQ(node.PoolOf(a), from);
  EXPECT_EQ(node.CpusOf(a), cpus);
  EXPECT_NE(a, b);
}

TEST_F(BalloonsSharedMovesTest, CrowdedBalloonsGiveToThoseWithRoom) {
  BalloonsNode node(kFixed);
  policy::MeasuredUse use{.over = std::chrono::seconds(60)};
  std::vector<ContainerKey> keys;
  for (const char* const name : {"a", "b", "c", "d"})
    keys.push_back(Run(node, name));
  for (const ContainerKey key : keys) {
    const bool crowded = node.PoolOf(key) == node.PoolOf(keys[0]);
    use.containers[key] = {.cpus = crowded ? 2.0 : 0.1, .pressure = crowded ? 40 : 0};
  }
  const policy::UsePlan plan =
      policy::PlanByUse(node.policy(), node.snapshot(), use, policy::UseLimits(), {});
  EXPECT_GT(plan.lacking, 1);
  ASSERT_THAT(plan.moves, SizeIs(1));
  EXPECT_EQ(plan.moves[0].from, node.PoolOf(keys[0]));
  const StatusOr<Plan> moved = Move(node, plan.moves[0].key, plan.moves[0].to);
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_NEAR(policy::Lacking(policy::LoadsOf(node.policy(), node.snapshot(), use)),
              plan.lacking_after, 0.001);
  // A restart keeps it where it is.
  node.RestartPolicy();
  node.Reconcile();
  EXPECT_EQ(node.PoolOf(plan.moves[0].key), plan.moves[0].to);
}

TEST_F(BalloonsSharedMovesTest, GroupedContainersAndImpossibleMovesStay) {
  BalloonsNode node(
      "balloonTypes: [{name: x, minCPUs: 4, maxCPUs: 4, minBalloons: 2, maxBalloons: 2, "
      "preferPerNamespaceBalloon: true}]");
  const ContainerKey a = Run(node, "a");
  EXPECT_THAT(node.policy().TargetsOf(node.snapshot(), a), IsEmpty());
  const std::string pool = node.PoolOf(a);
  for (const char* const to : {"x[0]", "x[1]", "x[7]"})
    EXPECT_EQ(Move(node, a, to).status().code(), StatusCode::kFailedPrecondition) << to;
  EXPECT_EQ(Move(node, ContainerKey{99}, "x[1]").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(node.PoolOf(a), pool);
}

TEST_F(BalloonsSharedMovesTest, ABalloonThatIsFullTakesNoneIn) {
  BalloonsNode node(kFixed);
  const ContainerKey a = Run(node, "a", 3000);
  Run(node, "b", 3500);
  EXPECT_THAT(node.policy().TargetsOf(node.snapshot(), a), IsEmpty());
}

// A balloon with sizeBy is as full as its limits make it.
TEST_F(BalloonsSharedMovesTest, WhatCountsForTheSizeCountsForTheRoom) {
  BalloonsNode node(
      "balloonTypes: [{name: x, minCPUs: 4, maxCPUs: 4, minBalloons: 2, maxBalloons: 2, sizeBy: "
      "limit}]");
  const ContainerKey a = *node.Run("a", {.request = 100, .type = "x", .limit = 3000});
  const ContainerKey b = *node.Run("b", {.request = 100, .type = "x", .limit = 3000});
  ASSERT_NE(node.PoolOf(a), node.PoolOf(b));
  EXPECT_THAT(node.policy().TargetsOf(node.snapshot(), a), IsEmpty());
}

}  // namespace
}  // namespace resmgr
