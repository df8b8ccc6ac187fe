// SPDX-License-Identifier: Apache-2.0
// Restarts after which less is known than before.
#include <string>

#include <gtest/gtest.h>

#include "policies/balloons/testing/balloons_node.h"

namespace resmgr {
namespace {

using test::BalloonsNode;

// The balloon's CPUs beyond those of its type are found, too.
TEST(BalloonsAdoptionTest, ReservedBalloonThatHasGrownStaysWithoutState) {
  BalloonsNode node("reservedResources: {cpu: \"cpuset:0\"}");
  const ContainerKey near = *node.Run("near", {.request = 3000});
  const ContainerKey system =
      *node.Run("system", {.namespace_name = "kube-system", .request = 2000});
  const std::string cpus = node.CpusOf(system);
  node.Remove(near);
  node.ForgetDecisions();
  node.Reconcile();
  EXPECT_EQ(node.CpusOf(system), cpus);
  EXPECT_EQ(node.PoolOf(system), "reserved[0]");
}

TEST(BalloonsAdoptionTest, WhatTheRuntimeReportsIsNewerThanAReason) {
  BalloonsNode node("balloonTypes: [{name: own, preferNewBalloons: true}]");
  const ContainerKey key = *node.Run("a", {.request = 1000, .type = "own"});
  const std::string before = node.PlacementOf(key).reason;
  const ContainerKey near = *node.Run("near", {.request = 3000, .type = "own"});
  ASSERT_TRUE(node.Resize(key, 3000).ok());
  node.Remove(near);
  const std::string cpus = node.CpusOf(key);
  node.snapshot().At(key).placement.reason = before;
  node.RestartPolicy();
  node.Reconcile();
  EXPECT_EQ(node.CpusOf(key), cpus);
}

// No other container has its CPUs, so they are all CPUs that its balloon had.
TEST(BalloonsAdoptionTest, BalloonThatIsShortStaysWithoutState) {
  BalloonsNode node("balloonTypes: [{name: x}, {name: y}]", test::MakeMachine({.cores = 5}));
  const ContainerKey small = *node.Run("small", {.request = 100, .type = "y"});
  const ContainerKey one = *node.Run("one", {.request = 100, .type = "x"});
  const ContainerKey late = *node.Run("late", {.request = 4500});
  const std::string cpus = node.CpusOf(late);
  ASSERT_EQ(node.SetOf(late).size(), 3);
  node.ForgetDecisions();
  node.Reconcile();
  EXPECT_EQ(node.CpusOf(late), cpus);
  EXPECT_EQ(node.PoolOf(late), "default[0]");
  EXPECT_EQ(node.PoolOf(small), "y[0]");
  EXPECT_EQ(node.PoolOf(one), "x[0]");
}

}  // namespace
}  // namespace resmgr
