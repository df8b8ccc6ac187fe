// SPDX-License-Identifier: Apache-2.0
// Balloons while CPUs are missing, as when some go offline.
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/allocator/want_of_room.h"
#include "policies/balloons/testing/balloons_node.h"

namespace resmgr {
namespace {

using test::BalloonsNode;
using test::Cpus;
using testing::ResultOf;

constexpr std::string_view kOfflineTypes = R"(
reservedResources: {cpu: "cpuset:0"}
whenShort: refuse
balloonTypes:
- {name: own, preferNewBalloons: true, preferSpreadingPods: true}
)";

std::string WithCpus(std::string_view cpus) {
  return "availableResources: {cpu: \"cpuset:" + std::string(cpus) + "\"}\n" +
         std::string(kOfflineTypes);
}

TEST(BalloonsOfflineTest, BalloonThatLostACpuSaysSoUntilItHasAllOfThem) {
  const auto lacks = [](bool is) { return ResultOf(LacksCpus, is); };
  BalloonsNode node(kOfflineTypes);
  const ContainerKey large = *node.Run("large", {.request = 14'000, .type = "own"});
  const ContainerKey small = *node.Run("small", {.request = 1000, .type = "own"});
  const CpuSet own = node.SetOf(large);
  const CpuSet other = node.SetOf(small);
  EXPECT_THAT(node.PlacementOf(large).reason, lacks(false));
  const std::string reason = node.PlacementOf(large).reason;

  const CpuSet lost = {own.First()};
  node.ChangeSection(WithCpus((Cpus("0-15") - lost).ToString()));
  node.Reconcile();
  EXPECT_EQ(node.SetOf(large), own - lost);
  EXPECT_EQ(node.SetOf(small), other);
  EXPECT_THAT(node.PlacementOf(large).reason, lacks(true));
  EXPECT_THAT(node.PlacementOf(small).reason, lacks(false));
  node.RestartPolicy();
  EXPECT_TRUE(node.Reconcile().empty()) << "a restart changes nothing, the reason included";

  node.ChangeSection(kOfflineTypes);
  node.Reconcile();
  EXPECT_EQ(node.SetOf(large), own);
  EXPECT_EQ(node.PlacementOf(large).reason, reason);
}

// Two CPUs go, first an idle one, and come back one after the other.
TEST(BalloonsOfflineTest, BalloonTakesACpuBackWhileAnotherOneIsMissing) {
  BalloonsNode node(kOfflineTypes);
  const ContainerKey large = *node.Run("large", {.request = 14'000, .type = "own"});
  const CpuSet own = node.SetOf(large);
  const CpuSet idle = Cpus("1-15") - own;
  const CpuSet lost = {own.First()};
  node.ChangeSection(WithCpus((Cpus("0-15") - idle).ToString()));
  node.Reconcile();
  EXPECT_EQ(node.SetOf(large), own);
  // The resource manager shows the policy only CPUs that are online.
  *node.snapshot().At(large).placement.cpus = own - lost;
  node.ChangeSection(WithCpus((Cpus("0-15") - idle - lost).ToString()));
  node.Reconcile();
  EXPECT_EQ(node.SetOf(large), own - lost);
  EXPECT_TRUE(LacksCpus(node.PlacementOf(large).reason)) << node.PlacementOf(large).reason;
  node.ChangeSection(WithCpus((Cpus("0-15") - idle).ToString()));
  node.Reconcile();
  EXPECT_EQ(node.SetOf(large), own) << node.PlacementOf(large).reason;
}

// The balloon that always exists lost its CPU, too: its configured minimum comes first, and the
// containers have all of their CPUs when the last CPU is back.
TEST(BalloonsOfflineTest, ABalloonThatAlwaysExistsHasItsMinimumFirst) {
  const std::string with_default =
      std::string(kOfflineTypes) +
      "- {name: default, minCPUs: 1, minBalloons: 1, maxBalloons: 1}\n";
  const auto without = [&with_default](const CpuSet& lost) {
    return "availableResources: {cpu: \"cpuset:" + (Cpus("0-15") - lost).ToString() + "\"}\n" +
           with_default;
  };
  BalloonsNode node(with_default);
  const ContainerKey large = *node.Run("large", {.request = 14'000, .type = "own"});
  const CpuSet own = node.SetOf(large);
  const CpuSet other = Cpus("1-15") - own;
  const CpuSet lost = {own.First()};
  node.ChangeSection(without(other | lost));
  node.Reconcile();
  EXPECT_EQ(node.SetOf(large), own - lost);
  node.ChangeSection(without(other));
  node.Reconcile();
  EXPECT_EQ(node.SetOf(large), own - lost);
  EXPECT_TRUE(LacksCpus(node.PlacementOf(large).reason)) << node.PlacementOf(large).reason;
  node.ChangeSection(without({}));
  node.Reconcile();
  EXPECT_EQ(node.SetOf(large).size(), 14) << node.PlacementOf(large).reason;
  EXPECT_FALSE(LacksCpus(node.PlacementOf(large).reason));
}

TEST(BalloonsOfflineTest, BalloonKeepsWhatItCanAndTakesAnother) {
  BalloonsNode node(kOfflineTypes);
  const ContainerKey key = *node.Run("a", {.request = 2000, .type = "own"});
  const CpuSet own = node.SetOf(key);
  const CpuSet lost = {own.First()};
  node.ChangeSection(WithCpus((Cpus("0-15") - lost).ToString()));
  node.Reconcile();
  EXPECT_EQ(node.SetOf(key).size(), 2);
  EXPECT_TRUE((own - lost).IsSubsetOf(node.SetOf(key)));
  EXPECT_FALSE(LacksCpus(node.PlacementOf(key).reason));
}

}  // namespace
}  // namespace resmgr
