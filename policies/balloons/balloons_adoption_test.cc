// SPDX-License-Identifier: Apache-2.0
// Restarts after which less is known than before.
#include <string>
#include <vector>

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

// Forgets all decisions; the container stays, also when it is looked at again with its name.
void ExpectThatItStays(BalloonsNode& node, ContainerKey key, int size) {
  const std::string cpus = node.CpusOf(key);
  ASSERT_EQ(node.SetOf(key).size(), size);
  node.ForgetDecisions();
  for (int i = 0; i < 2; ++i) {
    node.Reconcile();
    EXPECT_EQ(node.CpusOf(key), cpus) << "in " << node.PoolOf(key);
  }
}

// The balloon has more CPUs than its guest asks for.
TEST(BalloonsAdoptionTest, GuestInALargerBalloonStaysWithoutState) {
  BalloonsNode node("balloonTypes: [{name: big, minCPUs: 2}, {name: y}]",
                    test::MakeMachine({.cores = 4}));
  const ContainerKey big = *node.Run("big", {.request = 100, .type = "big"});
  const ContainerKey other = *node.Run("other", {.request = 1900, .type = "y"});
  const ContainerKey guest = *node.Run("guest", {.request = 100});
  ASSERT_EQ(node.PoolOf(guest), "big[0]");
  node.Remove(big);
  node.Remove(other);
  ExpectThatItStays(node, guest, 2);
}

// One component has no CPU yet, or another one than the first is there.
TEST(BalloonsAdoptionTest, SizesOfComponentsAreFoundWithoutState) {
  constexpr const char* kTypes =
      "balloonTypes: [{name: c}, {name: d, minCPUs: 3}, "
      "{name: both, components: [{balloonType: d}, {balloonType: c}]}, "
      "{name: either, componentCreation: balance-balloons, "
      "components: [{balloonType: c}, {balloonType: d}]}]";
  BalloonsNode both(kTypes);
  ExpectThatItStays(both, *both.Run("a", {.request = 500, .type = "both"}), 3);
  BalloonsNode either(kTypes);
  ASSERT_TRUE(either.Run("c", {.request = 500, .type = "c"}).ok());
  ExpectThatItStays(either, *either.Run("a", {.request = 500, .type = "either"}), 3);
}

// The one that shares the system's idle CPUs has one that the other one would see if it were idle.
TEST(BalloonsAdoptionTest, CpusThatOthersDoNotSeeAreItsOwnWithoutState) {
  BalloonsNode node(
      "balloonTypes: [{name: x}, {name: near, shareIdleCPUsInSame: numa}, "
      "{name: wide, shareIdleCPUsInSame: system}]",
      test::MakeMachine({.nodes = 2, .cores = 3}));
  const ContainerKey first = *node.Run("first", {.request = 3000, .type = "x"});
  const ContainerKey near = *node.Run("near", {.request = 1000, .type = "near"});
  const ContainerKey wide = *node.Run("wide", {.request = 500, .type = "wide"});
  node.Remove(first);
  const std::string cpus = node.CpusOf(near);
  ExpectThatItStays(node, wide, 5);
  EXPECT_EQ(node.CpusOf(near), cpus);
}

TEST(BalloonsAdoptionTest, IsolatedCpusAreNotSharedOnesWithoutState) {
  BalloonsNode node(
      "balloonTypes: [{name: iso, preferIsolCpus: true, shareIdleCPUsInSame: system}]",
      test::WithIsolated(test::N4C16(), "14-15"));
  ExpectThatItStays(node, *node.Run("a", {.request = 500, .type = "iso"}), 15);
}

// Its only container is a guest, whose own type would let it see the idle CPUs, too.
TEST(BalloonsAdoptionTest, GuestsKeepTheirCpusWithoutState) {
  BalloonsNode node(
      "balloonTypes: [{name: x}, {name: y}, {name: s, preferNewBalloons: true, "
      "shareIdleCPUsInSame: numa}]",
      test::MakeMachine({.cores = 3}));
  const ContainerKey goes = *node.Run("goes", {.request = 100, .type = "x"});
  const ContainerKey too = *node.Run("too", {.request = 1900, .type = "y"});
  const ContainerKey guest = *node.Run("guest", {.request = 500, .type = "s"});
  ASSERT_EQ(node.PoolOf(guest), "x[0]");
  node.Remove(goes);
  node.Remove(too);
  ExpectThatItStays(node, guest, 1);
}

// One that has no containers keeps CPUs that others would see if they were idle, also where these
// are fewer than it has.
TEST(BalloonsAdoptionTest, EmptyBalloonsStayAwayFromWhatOthersSeeAtARestart) {
  for (const char* const always :
       {"{name: always, minBalloons: 1, minCPUs: 3, allocatorTopologyBalancing: true}",
        "{name: part, minCPUs: 3, allocatorTopologyBalancing: true}, "
        "{name: always, minBalloons: 1, components: [{balloonType: part}]}"}) {
    BalloonsNode node(
        fmt::format("balloonTypes: [{{name: near, shareIdleCPUsInSame: l3cache}}, {}]", always),
        test::MakeMachine({.nodes = 2, .l3s = 2, .cores = 4}));
    const ContainerKey near = *node.Run("near", {.request = 1000, .type = "near"});
    ASSERT_EQ(node.CpusOfBalloon("always[0]"), "0-2");
    ASSERT_EQ(node.CpusOf(near), "3");
    for (int i = 0; i < 2; ++i) {
      node.RestartPolicy();
      node.Reconcile();
      EXPECT_EQ(node.CpusOf(near), "3") << always;
    }
    node.ForgetDecisions();
    node.Reconcile();
    EXPECT_EQ(node.CpusOf(near), "3") << always;
  }
}

// The composite chose its component when there were no other balloons.
TEST(BalloonsAdoptionTest, EmptyCompositesKeepTheirComponentsAtARestart) {
  BalloonsNode node(
      "balloonTypes: [{name: c, minCPUs: 1}, {name: d, minCPUs: 3}, {name: either, minBalloons: 1, "
      "componentCreation: balance-balloons, components: [{balloonType: d}, {balloonType: c}]}, "
      "{name: s, shareIdleCPUsInSame: system}]",
      test::MakeMachine({.cores = 8}));
  ASSERT_EQ(test::Cpus(node.CpusOfBalloon("either[0]")).size(), 3);
  ASSERT_TRUE(node.Run("d", {.request = 100, .type = "d"}).ok());
  const ContainerKey shares = *node.Run("s", {.request = 100, .type = "s"});
  const std::string cpus = node.CpusOf(shares);
  node.RestartPolicy();
  node.Reconcile();
  EXPECT_EQ(node.CpusOf(shares), cpus);
  EXPECT_EQ(test::Cpus(node.CpusOfBalloon("either[0]")).size(), 3);
}

// The balloons of claims may have any size, so they would explain any CPUs; but a container in one
// has its CPUs for itself alone.
TEST(BalloonsAdoptionTest, NoContainerIsInTheBalloonOfAClaimWithoutState) {
  BalloonsNode node("balloonTypes: [{name: x, minCPUs: 2, shareIdleCPUsInSame: system}]",
                    test::MakeMachine({.cores = 6}));
  const std::vector<ContainerKey> keys = {*node.Run("a", {.request = 100, .type = "x"}),
                                          *node.Run("b", {.request = 100, .type = "x"})};
  for (const ContainerKey key : keys)
    node.snapshot().At(key).placement.cpus = test::Cpus(node.CpusOfBalloon("x[0]"));
  node.ForgetDecisions();
  node.Reconcile();
  for (const ContainerKey key : keys) {
    EXPECT_TRUE(node.PlacementOf(key).exclusive.empty()) << "in " << node.PoolOf(key);
    EXPECT_NE(node.PoolOf(key), "claim[0]");
  }
}

TEST(BalloonsAdoptionTest, GuestsOfACompositeKeepTheirCpusWithoutState) {
  BalloonsNode node(
      "balloonTypes: [{name: c}, {name: both, components: [{balloonType: c}, {balloonType: c}]}, "
      "{name: y}, {name: s, preferNewBalloons: true, shareIdleCPUsInSame: numa}]",
      test::MakeMachine({.cores = 4}));
  const ContainerKey goes = *node.Run("goes", {.request = 100, .type = "both"});
  const ContainerKey too = *node.Run("too", {.request = 1900, .type = "y"});
  const ContainerKey guest = *node.Run("guest", {.request = 100, .type = "s"});
  ASSERT_EQ(node.PoolOf(guest), "both[0]");
  node.Remove(goes);
  node.Remove(too);
  ExpectThatItStays(node, guest, 2);
}

}  // namespace
}  // namespace resmgr
