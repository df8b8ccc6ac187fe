// SPDX-License-Identifier: Apache-2.0
// Limits: those of types, those of a configuration's size, and limits that change.
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/balloons/testing/balloons_node.h"

namespace resmgr {
namespace {

using test::BalloonsNode;
using test::Cpus;
using testing::HasSubstr;

std::string Error(std::string_view section) {
  return std::string(
      Message(test::CreateError(BalloonsPolicyFactory(), test::N4C16(), "0", section)));
}

// `text` with each number below `count` for its {}.
std::string Many(int count, std::string_view text) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all += fmt::format(fmt::runtime(text), i) + ", ";
  return all;
}

TEST(BalloonsLimitsTest, NoMoreBalloonsThanCpusAreMade) {
  EXPECT_THAT(Error("balloonTypes: [{name: x, instances: 8192 per thread}]"),
              HasSubstr("type x: 131072 balloons"));
  EXPECT_THAT(Error("balloonTypes: [{name: x, minBalloons: 8192}]"),
              HasSubstr("type x: 8192 balloons"));
  EXPECT_THAT(Error(fmt::format("balloonTypes: [{}]", Many(20, "{{name: x{}, minBalloons: 16}}"))),
              HasSubstr("322 balloons"));
  EXPECT_EQ(Error("balloonTypes: [{name: x, minBalloons: 14}]"), "");
}

TEST(BalloonsLimitsTest, TellsWhichOptionWouldLetARefusedContainerIn) {
  const auto ways = [](std::string_view section, int64_t first, int64_t second) {
    BalloonsNode node(section);
    EXPECT_TRUE(node.Run("a", {.request = first, .type = "x"}).ok());
    EXPECT_NE(node.Run("b", {.request = second, .type = "x"}).status().code(), StatusCode::kOk);
    const ContainerKey key = node.Add("c", {.request = second, .type = "x"});
    return node.policy().WaysIn(node.snapshot(), node.snapshot().PodOf(key),
                                node.snapshot().At(key));
  };
  EXPECT_THAT(ways("balloonTypes: [{name: x, maxCPUs: 2}]", 1000, 4000),
              testing::ElementsAre("maxCPUs: 4 of type x"));
  EXPECT_THAT(ways("balloonTypes: [{name: x, maxCPUs: 4, maxBalloons: 1}]", 4000, 1000),
              testing::ElementsAre("maxBalloons: 2 of type x"));
  EXPECT_THAT(ways("{whenShort: refuse, balloonTypes: [{name: x}]}", 14'000, 4000),
              testing::IsEmpty())
      << "no scheduler sends it";
}

TEST(BalloonsLimitsTest, WhatNeverFitsIsNotRefusedForWantOfRoom) {
  BalloonsNode node("balloonTypes: [{name: x}]");
  EXPECT_EQ(node.Run("a", {.request = 17'000, .type = "x"}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(BalloonsLimitsTest, AConfigurationHasALimitedSize) {
  EXPECT_THAT(Error(fmt::format("balloonTypes: [{}]", Many(257, "{{name: x{}}}"))),
              HasSubstr("at most 256"));
  EXPECT_THAT(Error(fmt::format("loadClasses: [{}]", Many(65, "{{name: x{}, level: core}}"))),
              HasSubstr("at most 64"));
  const auto type = [](std::string_view keys) {
    return Error(fmt::format("balloonTypes: [{{name: x, {}}}]", keys));
  };
  EXPECT_THAT(type(fmt::format("preferCloseToDevices: [{}]", Many(65, "/dev/d{}"))),
              HasSubstr("at most 64"));
  EXPECT_THAT(type(fmt::format("loads: [{}]", Many(65, "l{}"))), HasSubstr("at most 64"));
  EXPECT_THAT(type(fmt::format("matchExpressions: [{}]",
                               Many(65, "{{key: name, operator: In, values: [a{}]}}"))),
              HasSubstr("at most 64"));
  EXPECT_THAT(type(fmt::format("components: [{}]", Many(65, "{{balloonType: y{}}}"))),
              HasSubstr("at most 64"));
  EXPECT_EQ(type(fmt::format("preferCloseToDevices: [{}]", Many(64, "/dev/d{}"))), "");
}

TEST(BalloonsLimitsTest, AMergeKeepsTheLimitOfPods) {
  BalloonsNode node("balloonTypes: [{name: x, preferNewBalloons: true, maxPods: 3}]",
                    test::MakeMachine({.cores = 3}));
  ASSERT_TRUE(node.Run("d", {.request = 1000}).ok());
  const ContainerKey a = *node.Run("a", {.request = 100, .type = "x"});
  const ContainerKey b = *node.Run("b", {.request = 100, .type = "x"});
  ASSERT_TRUE(node.Run("c", {.request = 100, .type = "x"}).ok());
  ASSERT_TRUE(node.Run("f", {.request = 100, .type = "x"}).ok());
  ASSERT_TRUE(node.Run("e", {.request = 1000}).ok());
  EXPECT_NE(node.PoolOf(a), node.PoolOf(b)) << "four pods would be in one";
}

TEST(BalloonsLimitsTest, AGuestComesWhereItsPodFits) {
  BalloonsNode node("balloonTypes: [{name: x, maxPods: 1}, {name: y, maxCPUs: 1}, {name: z}]",
                    test::MakeMachine({.cores = 2}));
  ASSERT_TRUE(node.Run("x", {.request = 100, .type = "x"}).ok());
  ASSERT_TRUE(node.Run("y", {.request = 950, .type = "y"}).ok());
  const ContainerKey z = *node.Run("z", {.request = 100, .type = "z"});
  EXPECT_EQ(node.PoolOf(z), "y[0]");
}

TEST(BalloonsLimitsTest, AnotherAttemptKeepsTheLimitOfPods) {
  BalloonsNode node("balloonTypes: [{name: x, maxPods: 1}]");
  const ContainerKey first = *node.Run("a", {.request = 100, .type = "x"});
  const Container gone = node.snapshot().At(first);
  node.Remove(first);
  EXPECT_EQ(node.PoolOf(*node.Run("b", {.request = 100, .type = "x"})), "x[0]");
  const ContainerKey again = node.Add("a", {.request = 100, .type = "x"});
  ASSERT_TRUE(node.Place(again, &gone).ok());
  EXPECT_EQ(node.PoolOf(again), "x[1]");
}

TEST(BalloonsLimitsTest, ABalloonOfTheSameNameIsNotTheFormerOne) {
  BalloonsNode node("balloonTypes: [{name: x, preferNewBalloons: true}]");
  const ContainerKey first = *node.Run("a", {.request = 100, .type = "x"});
  const Container gone = node.snapshot().At(first);
  node.Remove(first);
  EXPECT_EQ(node.PoolOf(*node.Run("b", {.request = 100, .type = "x"})), "x[0]");
  const ContainerKey again = node.Add("a", {.request = 100, .type = "x"});
  ASSERT_TRUE(node.Place(again, &gone).ok());
  EXPECT_EQ(node.PoolOf(again), "x[1]") << "b has its balloon alone";
}

TEST(BalloonsLimitsTest, NewBoundsCountForBalloonsThatExist) {
  const auto section = [](std::string_view bounds) {
    return fmt::format("balloonTypes: [{{name: x{}}}]", bounds);
  };
  BalloonsNode node(section(", minCPUs: 6"));
  const ContainerKey a = *node.Run("a", {.request = 2000, .type = "x"});
  EXPECT_EQ(node.SetOf(a).size(), 6);
  node.ChangeSection(section(""));
  node.Reconcile();
  EXPECT_EQ(node.SetOf(a).size(), 2);
  node.ChangeSection(section(", minCPUs: 4"));
  node.Reconcile();
  EXPECT_EQ(node.SetOf(a).size(), 4);
  node.ChangeSection(section(", maxCPUs: 1"));
  node.Reconcile();
  EXPECT_EQ(node.SetOf(a).size(), 1);
}

TEST(BalloonsLimitsTest, RoomIsKeptWhereTheCpusOfTheTypeAre) {
  BalloonsNode node("balloonTypes: [{name: x, cpus: \"4-5\", maxCPUs: 4, growWithin: numa}]");
  const ContainerKey a = *node.Run("a", {.request = 100, .type = "x"});
  EXPECT_EQ(node.CpusOf(a), "4-5");
  EXPECT_EQ(node.CpusAt("d", {.request = 12'000}), "0-3,8-15");
  ASSERT_TRUE(node.Resize(a, 4000).ok());
  EXPECT_EQ(node.CpusOf(a), "4-7");
}

TEST(BalloonsLimitsTest, RoomThatNoPartHasIsAnError) {
  const Machine machine = test::N4C16();
  ASSERT_TRUE(PartsAt(machine, BalloonLevel::kNuma, machine.online()).size() == 4);
  EXPECT_THAT(Error("balloonTypes: [{name: x, maxCPUs: 5, growWithin: numa}]"),
              HasSubstr("growWithin"));
  // A machine whose caches are not known.
  Machine::Parts parts{
      .cpus = machine.cpus(), .nodes = machine.nodes(), .allowed = machine.allowed()};
  for (Cpu& cpu : parts.cpus)
    cpu.l3 = -1;
  EXPECT_THAT(std::string(Message(test::CreateError(
                  BalloonsPolicyFactory(), test::MakeMachine(std::move(parts)), "0",
                  "balloonTypes: [{name: x, maxCPUs: 1, growWithin: l3cache}]"))),
              HasSubstr("no l3cache"));
}

TEST(BalloonsLimitsTest, HiddenHyperthreadsLeaveABalloonItsOwnThread) {
  BalloonsNode node("balloonTypes: [{name: x, hideHyperthreads: true, shareIdleCPUsInSame: numa}]");
  const ContainerKey d = *node.Run("d", {.request = 1000});
  ASSERT_EQ(node.CpusOf(d), "0");
  const ContainerKey x = *node.Run("x", {.request = 1000, .type = "x"});
  ASSERT_EQ(node.CpusOfBalloon("x[0]"), "1");
  node.Remove(d);
  EXPECT_EQ(node.CpusOf(x), "1-2") << "CPU 0 is idle, and CPU 1 its own";
}

TEST(BalloonsPlacingTest, AmongThoseOfItsNamespaceItTakesTheEmptiestAsTheyAre) {
  BalloonsNode node("balloonTypes: [{name: x, maxCPUs: 3, preferPerNamespaceBalloon: true}]");
  ASSERT_TRUE(node.Run("a", {.request = 1900, .type = "x"}).ok());
  ASSERT_TRUE(node.Run("b", {.request = 2350, .type = "x"}).ok());
  EXPECT_EQ(node.PoolOf(*node.Run("c", {.request = 500, .type = "x"})), "x[1]");
  EXPECT_EQ(Cpus(node.CpusOfBalloon("x[0]")).size(), 2) << "it need not grow";
}

}  // namespace
}  // namespace resmgr
