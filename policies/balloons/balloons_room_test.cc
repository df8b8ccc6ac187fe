// SPDX-License-Identifier: Apache-2.0
// Containers that the scheduler was right to send, where no whole CPUs are left for them.
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/allocator/want_of_room.h"
#include "policies/balloons/testing/balloons_node.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Apart;
using test::BalloonsNode;
using test::Cpus;
using test::Must;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ResultOf;
using testing::StartsWith;

constexpr std::string_view kAlone = "balloonTypes: [{name: alone, preferNewBalloons: true}]";

TEST(BalloonsRoomTest, MissingCpusComeFromABalloonWhoseContainersShare) {
  BalloonsNode node(kAlone, test::MakeMachine({.cores = 8}));
  ContainerKey shares{};
  for (int i = 0; i < 4; ++i)
    shares = *node.Run("shares" + std::to_string(i), {.request = 1100});
  const ContainerKey first = *node.Run("first", {.request = 3000, .type = "alone"});
  const CpuSet former = node.SetOf(shares);
  ASSERT_EQ(former.size() + node.SetOf(first).size(), 8);
  const ContainerKey last = *node.Run("last", {.request = 600, .type = "alone"});
  EXPECT_EQ(node.PoolOf(last), "alone[1]");
  EXPECT_THAT(node.PlacementOf(last).reason, Not(StartsWith(std::string(kWantOfRoom))));
  EXPECT_TRUE(Apart(node.SetOf(last), node.SetOf(first) | node.SetOf(shares)));
  EXPECT_EQ(node.SetOf(shares).size(), 4);
  EXPECT_THAT(node.PlacementOf(shares).reason, HasSubstr(std::string(kFewerCpus)));
  // It gets them back.
  node.Remove(last);
  EXPECT_EQ(node.SetOf(shares), former);
}

TEST(BalloonsRoomTest, MissingCpusComeFromANodeThatHasEnough) {
  BalloonsNode node(kAlone, test::MakeMachine({.nodes = 2, .cores = 4}));
  ContainerKey shares{};
  for (int i = 0; i < 5; ++i)
    shares = *node.Run("shares" + std::to_string(i), {.request = 1100});
  const ContainerKey first = *node.Run("first", {.request = 1000, .type = "alone"});
  ASSERT_EQ(node.SetOf(shares).size(), 6);
  const ContainerKey last = *node.Run("last", {.request = 1500, .type = "alone"});
  EXPECT_EQ(node.machine().NodesOf(node.SetOf(last)), node.machine().NodesOf(node.SetOf(first)));
  EXPECT_EQ(node.SetOf(last).size(), 2);
  EXPECT_EQ(node.SetOf(shares).size(), 5);
}

// Half of its CPUs would be too many.
TEST(BalloonsRoomTest, BalloonThatSharesKeepsMostOfItsCpus) {
  BalloonsNode node("{moveBudget: 0, balloonTypes: [{name: alone, preferNewBalloons: true}]}",
                    test::MakeMachine({.cores = 5}));
  const ContainerKey shares = *node.Run("a", {.request = 900});
  ASSERT_TRUE(node.Run("b", {.request = 900}).ok());
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(node.Run("c" + std::to_string(i), {.request = 900, .type = "alone"}).ok());
  const ContainerKey last = *node.Run("last", {.request = 400, .type = "alone"});
  EXPECT_THAT(node.PlacementOf(last).reason, StartsWith(std::string(kWantOfRoom)));
  EXPECT_EQ(node.SetOf(shares).size(), 2);
}

// Two CPUs are idle in each of two nodes, and three are needed.
TEST(BalloonsRoomTest, BalloonThatWouldBeSplitGetsCpusOfOthersIfItsTypeSaysSo) {
  for (const bool within : {false, true}) {
    BalloonsNode node(fmt::format("balloonTypes: [{{name: alone, preferNewBalloons: true{}}}]",
                                  within ? ", makeRoomWithin: numa" : ""),
                      test::MakeMachine({.nodes = 2, .cores = 4}));
    const ContainerKey shares = *node.Run("a", {.request = 1000});
    ASSERT_TRUE(node.Run("b", {.request = 1000}).ok());
    const ContainerKey goes = *node.Run("goes", {.request = 2000, .type = "alone"});
    ASSERT_TRUE(node.Run("c", {.request = 2000}).ok());
    node.Remove(goes);
    const ContainerKey last = *node.Run("last", {.request = 3000, .type = "alone"});
    EXPECT_EQ(node.SetOf(last).size(), 3);
    EXPECT_EQ(node.machine().NodesOf(node.SetOf(last)).size(), within ? 1 : 2);
    EXPECT_EQ(node.SetOf(shares).size(), 4);
    EXPECT_TRUE(Apart(node.SetOf(shares), node.SetOf(last)));
  }
}

// Balloons of such containers are the last ones that take guests.
TEST(BalloonsRoomTest, GuestsLeaveContainersAloneThatAreToBe) {
  BalloonsNode node(
      "{moveBudget: 0, balloonTypes: [{name: alone, preferNewBalloons: true}, {name: other}]}",
      test::MakeMachine({.cores = 4}));
  const ContainerKey alone = *node.Run("alone", {.request = 1100, .type = "alone"});
  const ContainerKey other = *node.Run("other", {.request = 1900, .type = "other"});
  const ContainerKey guest = *node.Run("guest", {.request = 900});
  EXPECT_EQ(node.PoolOf(guest), node.PoolOf(other));
  EXPECT_TRUE(Apart(node.SetOf(alone), node.SetOf(guest)));
}

// The balloon would be short of CPUs in any case, so it does not give one up to another short one.
TEST(BalloonsRoomTest, AResizeWithoutRoomTakesNoCpus) {
  BalloonsNode node(
      "{moveBudget: 0, balloonTypes: [{name: other, preferCloseToDevices: [/dev/x]}, {name: "
      "last}]}",
      test::MakeMachine({.cores = 5}));
  const ContainerKey key = *node.Run("a", {.request = 1100});
  const ContainerKey other = *node.Run("b", {.request = 1100, .type = "other"});
  ASSERT_TRUE(node.Run("c", {.request = 100, .type = "last"}).ok());
  ASSERT_TRUE(node.Run("d", {.request = 950, .type = "other"}).ok());
  const CpuSet own = node.SetOf(key);
  const CpuSet others = node.SetOf(other);
  ASSERT_TRUE(node.Resize(key, 2100).ok());
  EXPECT_EQ(node.SetOf(key), own);
  EXPECT_EQ(node.SetOf(other), others);
  EXPECT_THAT(node.PlacementOf(key).reason, StartsWith(std::string(kWantOfRoom)));
  ASSERT_TRUE(node.Resize(key, 100).ok());
  EXPECT_EQ(node.SetOf(key).size(), 1);
  EXPECT_EQ(node.SetOf(other).size(), 3);
}

// A new balloon would have its CPUs, and memory, in another node, whose containers can give two up.
TEST(BalloonsRoomTest, AResizeThatNeedsRoomKeepsTheCpus) {
  BalloonsNode node(kAlone, test::MakeMachine({.nodes = 2, .cores = 6}));
  ASSERT_EQ(node.CpusAt("others", {.request = 5000, .type = "alone"}), "0-4");
  const ContainerKey key = *node.Run("a", {.request = 900, .type = "alone"});
  ASSERT_EQ(node.CpusOf(key), "5");
  ContainerKey shares{};
  for (int i = 0; i < 5; ++i)
    shares = *node.Run("shares" + std::to_string(i), {.request = 1100});
  ASSERT_EQ(node.CpusOf(shares), "6-11");
  ASSERT_TRUE(node.Resize(key, 1400).ok());
  EXPECT_EQ(node.SetOf(key).size(), 2);
  EXPECT_TRUE(node.SetOf(key).Contains(5)) << node.CpusOf(key);
  EXPECT_EQ(node.SetOf(shares).size(), 5);
  EXPECT_THAT(node.PlacementOf(key).reason,
              HasSubstr("; with CPUs of others that share theirs; own CPUs"));
}

// The balloon gave up others of its CPUs than it had got.
TEST(BalloonsRoomTest, AGuestThatIsTakenBackLeavesNoTrace) {
  BalloonsNode node("balloonTypes: [{name: other, preferNewBalloons: true}]",
                    test::MakeMachine({.nodes = 2, .cores = 4}));
  const ContainerKey first = *node.Run("first", {.request = 2100, .type = "other"});
  const ContainerKey key = *node.Run("a", {.request = 100});
  ASSERT_TRUE(node.Resize(key, 3100).ok());
  node.Remove(first);
  ASSERT_TRUE(node.Run("b", {.request = 1100, .type = "other"}).ok());
  const CpuSet own = node.SetOf(key);
  ASSERT_EQ(own.size(), 4);
  const ContainerKey guest = *node.Run("guest", {.request = 3000});
  ASSERT_EQ(node.SetOf(key).size(), 6);
  node.Remove(guest);
  EXPECT_EQ(node.SetOf(key), own);
}

// A scheduler sends such a container whatever the others request.
TEST(BalloonsRoomTest, AContainerWithoutRequestIsTakenByANodeThatLostCpus) {
  BalloonsNode node("balloonTypes: [{name: other}]", test::MakeMachine({.cores = 4}));
  ASSERT_TRUE(node.Run("a", {.request = 4000}).ok());
  node.SetOffline({3});
  const ContainerKey key = Must(node.Run("b", {.request = 0, .type = "other"}));
  EXPECT_FALSE(node.SetOf(key).empty());
}

// Schedulers do not send by such a reservation, or the node would get no containers with requests.
TEST(BalloonsRoomTest, AllCpusMayBeReserved) {
  for (const std::string_view reserved : {"cpuset:0-15", "exclude-cpuset:16", "16"}) {
    SCOPED_TRACE(reserved);
    BalloonsNode node(fmt::format("reservedResources: {{cpu: \"{}\"}}", reserved));
    const ContainerKey system = *node.Run("s", {.namespace_name = "kube-system", .request = 100});
    EXPECT_EQ(node.CpusOf(system), "0-15");
    const ContainerKey key = Must(node.Run("a", {.request = 500}));
    EXPECT_EQ(node.CpusOf(key), "0-15");
    EXPECT_THAT(node.PlacementOf(key).reason, StartsWith(std::string(kWantOfRoom)));
    EXPECT_FALSE(node.Run("b", {.request = 15'500}).ok()) << "more than there is";
  }
}

TEST(BalloonsRoomTest, AReservedCompositeIsToldHowToReserve) {
  const std::string types =
      "balloonTypes: [{name: part}, {name: reserved, components: [{balloonType: part}]}]";
  EXPECT_THAT(Message(test::CreateError(BalloonsPolicyFactory(), test::N4C16(), "0", types)),
              AllOf(HasSubstr("policy.ReservedResources.CPU"),
                    HasSubstr("policy.balloons.reservedResources: {cpu: 1}")));
  EXPECT_TRUE(test::CreateError(BalloonsPolicyFactory(), test::N4C16(), "0",
                                types + "\nreservedResources: {cpu: 1}")
                  .ok());
}

// Limits: those of types, those of a configuration's size, and limits that change.

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

// A container of another type shares its CPUs, as any where room is short.
TEST(BalloonsLimitsTest, GuestsLeaveItsLimitsToTheContainersOfTheType) {
  BalloonsNode node("balloonTypes: [{name: x, maxCPUs: 1, maxBalloons: 1}, {name: y}, {name: z}]",
                    test::MakeMachine({.cores = 2}));
  const ContainerKey x = *node.Run("x1", {.request = 500, .type = "x"});
  const ContainerKey y = *node.Run("y", {.request = 950, .type = "y"});
  ASSERT_EQ(node.PoolOf(*node.Run("z", {.request = 400, .type = "z"})), "x[0]");
  const ContainerKey second = Must(node.Run("x2", {.request = 150, .type = "x"}));
  EXPECT_EQ(node.PoolOf(second), "x[0]");
  node.Remove(second);
  const Status larger = node.Resize(x, 650);
  EXPECT_TRUE(larger.ok()) << larger;
  EXPECT_EQ(node.PoolOf(x), "x[0]");
  node.Remove(y);
  EXPECT_TRUE(node.Resize(x, 1000).ok());
  EXPECT_FALSE(node.Resize(x, 1001).ok()) << "the type's own limit";
}

TEST(BalloonsLimitsTest, GuestsLeaveItsPodsToTheContainersOfTheType) {
  BalloonsNode node("balloonTypes: [{name: x, maxPods: 2, maxBalloons: 1}, {name: y}, {name: z}]",
                    test::MakeMachine({.cores = 2}));
  ASSERT_TRUE(node.Run("x1", {.request = 500, .type = "x"}).ok());
  ASSERT_TRUE(node.Run("y", {.request = 950, .type = "y"}).ok());
  ASSERT_EQ(node.PoolOf(*node.Run("z", {.request = 400, .type = "z"})), "x[0]");
  const ContainerKey second = Must(node.Run("x2", {.request = 50, .type = "x"}));
  EXPECT_EQ(node.PoolOf(second), "x[0]");
  EXPECT_FALSE(node.Run("x3", {.request = 50, .type = "x"}).ok()) << "the third pod of the type";
}

// It would have three pods with the guest's.
TEST(BalloonsLimitsTest, AMergeLeavesItsPodsToTheContainersOfTheType) {
  BalloonsNode node(
      "balloonTypes: [{name: x, preferNewBalloons: true, maxPods: 2}, {name: y}, "
      "{name: z, preferNewBalloons: true}]",
      test::MakeMachine({.cores = 3}));
  const ContainerKey a = *node.Run("a", {.request = 100, .type = "x"});
  const ContainerKey goes = *node.Run("goes", {.request = 1900, .type = "z"});
  const ContainerKey guest = *node.Run("guest", {.request = 50, .type = "y"});
  ASSERT_EQ(node.PoolOf(guest), "x[0]");
  node.Remove(goes);
  const ContainerKey b = *node.Run("b", {.request = 100, .type = "x"});
  ASSERT_EQ(node.PoolOf(b), "x[1]");
  ASSERT_TRUE(node.Run("d", {.request = 1000}).ok());
  const ContainerKey e = *node.Run("e", {.request = 1000, .type = "z"});
  EXPECT_EQ(node.PoolOf(e), "z[0]") << node.PlacementOf(e).reason;
  EXPECT_EQ(node.PoolOf(b), node.PoolOf(a));
  EXPECT_EQ(node.PoolOf(guest), "x[0]");
}

// The guest moves with the container whose balloon it is in.
TEST(BalloonsLimitsTest, AGuestThatMovesIsToldToBeWhereItIs) {
  BalloonsNode node(
      "balloonTypes: [{name: x, preferNewBalloons: true}, {name: y}, "
      "{name: z, preferNewBalloons: true}]",
      test::MakeMachine({.cores = 4}));
  const ContainerKey a = *node.Run("a", {.request = 100, .type = "x"});
  const ContainerKey goes = *node.Run("goes", {.request = 2900, .type = "z"});
  const ContainerKey guest = *node.Run("guest", {.request = 50, .type = "y"});
  ASSERT_EQ(node.PoolOf(guest), "x[0]");
  node.Remove(goes);
  const ContainerKey b = *node.Run("b", {.request = 100, .type = "x"});
  ASSERT_TRUE(node.CreateIn(b, "c", 100).ok());
  ASSERT_TRUE(node.CreateIn(b, "f", 100).ok());
  ASSERT_TRUE(node.Run("d", {.request = 2000}).ok());
  ASSERT_TRUE(node.Run("e", {.request = 1000, .type = "z"}).ok());
  ASSERT_EQ(node.PoolOf(a), "x[1]");
  EXPECT_EQ(node.PoolOf(guest), "x[1]");
  EXPECT_THAT(node.PlacementOf(guest).reason,
              StartsWith("shared for want of room: type y by annotation in x[1], for y has no CPUs "
                         "left; moved to make room"));
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

// The lists of other types, and reserved CPUs, are not part of the room, nor of a minimum size.
TEST(BalloonsLimitsTest, RoomIsNotKeptOnCpusThatOtherTypesList) {
  for (const std::string_view more : {"growWithin: package", "minCPUs: 4"}) {
    for (const std::string_view others :
         {"balloonTypes: [{}, {{name: g, cpus: 6-7}}]",
          "balloonTypes: [{}, {{name: reserved}}]\nreservedResources: {{cpu: \"cpuset:6-7\"}}"}) {
      const std::string section = fmt::format(
          fmt::runtime(others), fmt::format("{{name: f, cpus: 4-5, maxCPUs: 4, {}}}", more));
      SCOPED_TRACE(section);
      ASSERT_EQ(Error(section), "");
      BalloonsNode node(section);
      const ContainerKey a = *node.Run("a", {.request = 1000, .type = "f"});
      ASSERT_TRUE(node.Resize(a, 4000).ok());
      EXPECT_EQ(node.SetOf(a).size(), 4) << node.PlacementOf(a).reason;
      EXPECT_TRUE(node.SetOf(a).IsSubsetOf(Cpus("0-5"))) << node.CpusOf(a);
    }
  }
  EXPECT_THAT(Error("balloonTypes: [{name: f, cpus: 4-5, maxCPUs: 4, growWithin: numa}, "
                    "{name: g, cpus: 6-7}]"),
              HasSubstr("no numa has room for 4 CPUs"));
}

TEST(BalloonsLimitsTest, RoomThatNoPartHasIsAnError) {
  const Machine machine = test::N4C16();
  ASSERT_TRUE(PartsAt(machine, BalloonLevel::kNuma, machine.online()).size() == 4);
  EXPECT_THAT(Error("balloonTypes: [{name: x, maxCPUs: 5, growWithin: numa}]"),
              HasSubstr("growWithin"));
  // A machine whose caches are not known.
  Machine::Parts parts = test::PartsOf(machine);
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

// Balloons while CPUs are missing, as when some go offline.

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

// A type may list CPUs that are offline: its balloon has the others, and as many instead.
TEST(BalloonsOfflineTest, ATypeMayListCpusThatAreOffline) {
  BalloonsNode node(
      "balloonTypes: [{name: fixed, cpus: 4-7}, {name: other, preferNewBalloons: true}]");
  const ContainerKey key = *node.Run("a", {.request = 4000, .type = "fixed"});
  ASSERT_EQ(node.CpusOf(key), "4-7");
  node.SetOffline({5});
  EXPECT_EQ(node.SetOf(key).size(), 4) << node.CpusOf(key);
  EXPECT_TRUE(Cpus("4,6-7").IsSubsetOf(node.SetOf(key))) << node.CpusOf(key);
  EXPECT_FALSE(LacksCpus(node.PlacementOf(key).reason));
  node.SetOffline(Cpus("4-7"));
  EXPECT_EQ(node.SetOf(key).size(), 4) << node.CpusOf(key);
  EXPECT_FALSE(node.SetOf(key).Intersects(Cpus("4-7")));
  EXPECT_EQ(node.PoolOf(key), "fixed[0]");
  node.SetOffline({});
  EXPECT_EQ(node.CpusOf(key), "4-7");
}

// Rooms, and CPUs beyond the list, are chosen after the balloons of running containers are known.
TEST(BalloonsOfflineTest, NoRoomIsKeptWhereOthersRun) {
  for (const std::string_view more : {"growWithin: package", "minCPUs: 4"}) {
    SCOPED_TRACE(more);
    const std::string types =
        fmt::format("balloonTypes: [{{name: x, cpus: 0-1, maxCPUs: 4, {}}}, {{name: y}}]", more);
    BalloonsNode node(types);
    const ContainerKey b = *node.Run("b", {.request = 2000, .type = "y"});
    ASSERT_EQ(node.CpusOf(b), "4-5");
    node.SetOffline({2});
    EXPECT_EQ(node.CpusOf(b), "4-5");
    EXPECT_EQ(node.PoolOf(b), "y[0]");
    const ContainerKey a = *node.Run("a", {.request = 4000, .type = "x"});
    EXPECT_EQ(node.SetOf(a).size(), 4) << node.CpusOf(a);
    // The type with the list comes later.
    BalloonsNode other("balloonTypes: [{name: y}]");
    const ContainerKey first = *other.Run("first", {.request = 2000, .type = "y"});
    const ContainerKey second = *other.Run("second", {.request = 2000});
    ASSERT_EQ(other.CpusOf(second), "2-3");
    other.Remove(first);
    other.ChangeSection(types);
    other.Reconcile();
    EXPECT_EQ(other.CpusOf(second), "2-3");
  }
}

// Others have all other CPUs: the container has what is left, and says so.
TEST(BalloonsOfflineTest, ABalloonOfListedCpusThatLostOneSaysSo) {
  BalloonsNode node(
      "balloonTypes: [{name: fixed, cpus: 4-7}, {name: other, preferNewBalloons: true}]");
  const ContainerKey key = *node.Run("a", {.request = 4000, .type = "fixed"});
  ASSERT_TRUE(node.Run("b", {.request = 12'000, .type = "other"}).ok());
  node.SetOffline({5});
  EXPECT_EQ(node.CpusOf(key), "4,6-7");
  EXPECT_TRUE(LacksCpus(node.PlacementOf(key).reason)) << node.PlacementOf(key).reason;
  node.SetOffline({});
  EXPECT_EQ(node.CpusOf(key), "4-7");
  EXPECT_FALSE(LacksCpus(node.PlacementOf(key).reason));
}

TEST(BalloonsOfflineTest, ReservedCpusMayBeOffline) {
  BalloonsNode node("reservedResources: {cpu: \"cpuset:0-1\"}");
  node.SetOffline({1});
  EXPECT_EQ(node.CpusOfBalloon("reserved[0]"), "0");
  node.SetOffline({0, 1});
  EXPECT_EQ(Cpus(node.CpusOfBalloon("reserved[0]")).size(), 2) << "others take their place";
  node.SetOffline({});
  EXPECT_EQ(node.CpusOfBalloon("reserved[0]"), "0-1");
}

// The numbers of balloons per level belong to the same parts as before.
TEST(BalloonsOfflineTest, BalloonsOfOtherNodesStayWhereANodeIsOffline) {
  BalloonsNode node("balloonTypes: [{name: x, minCPUs: 1, instances: 1 per numa}]");
  std::map<ContainerKey, Placement> before;
  for (const char* const name : {"a", "b", "c", "d"}) {
    const ContainerKey key = *node.Run(name, {.request = 1000, .type = "x"});
    before[key] = node.PlacementOf(key);
  }
  const CpuSet lost = node.machine().nodes()[0].cpus;
  node.SetOffline(lost);
  for (const auto& [key, place] : before) {
    EXPECT_TRUE(Apart(node.SetOf(key), lost)) << node.CpusOf(key);
    if (place.cpus->Intersects(lost)) continue;
    EXPECT_EQ(node.PoolOf(key), place.pool);
    EXPECT_TRUE(place.cpus->IsSubsetOf(node.SetOf(key))) << node.CpusOf(key);
  }
}

// An idle CPU goes offline: fewer balloons would be made then, but those that exist
// stay.
TEST(BalloonsOfflineTest, ASmallerShareOfTheCpusDissolvesNoBalloonThatIsInUse) {
  for (const std::string_view instances : {"50 %", "8 CPUs"}) {
    SCOPED_TRACE(instances);
    BalloonsNode node(fmt::format(
        "balloonTypes: [{{name: pool, minCPUs: 4, maxCPUs: 4, instances: {}}}]", instances));
    ASSERT_TRUE(node.Run("a", {.request = 4000, .type = "pool"}).ok());
    const ContainerKey b = *node.Run("b", {.request = 4000, .type = "pool"});
    const CpuSet own = node.SetOf(b);
    ASSERT_EQ(node.PoolOf(b), "pool[1]");
    const CpuSet lost = instances == "50 %" ? Cpus("15") : Cpus("8-15") | Cpus("0");
    for (const CpuSet& offline : {lost, CpuSet()}) {
      node.SetOffline(offline);
      EXPECT_EQ(node.PoolOf(b), "pool[1]") << node.PlacementOf(b).reason;
      EXPECT_EQ(node.SetOf(b), own);
    }
    node.SetOffline(lost);
    node.ForgetDecisions();
    node.Reconcile();
    EXPECT_EQ(node.SetOf(b), own) << "nor without the daemon's state";
    node.Remove(b);
    EXPECT_FALSE(node.Run("c", {.request = 4000, .type = "pool"}).ok()) << "no new one is made";
  }
}

// The containers of a balloon that has no CPU left run on those of others.
TEST(BalloonsOfflineTest, NoContainerIsInABalloonWithoutCpus) {
  BalloonsNode node("balloonTypes: [{name: fixed}]", test::MakeMachine({.cores = 3}));
  const ContainerKey key = *node.Run("a", {.request = 1000, .type = "fixed"});
  ASSERT_EQ(node.CpusOf(key), "0");
  ASSERT_EQ(node.CpusAt("b", {.request = 1000}), "1");
  node.SetOffline({2});
  node.ChangeSection(
      "{reservedResources: {cpu: \"cpuset:0\"}, balloonTypes: [{name: fixed, cpus: 2}]}");
  node.Reconcile();
  EXPECT_FALSE(node.SetOf(key).empty());
  EXPECT_THAT(node.PlacementOf(key).reason, StartsWith(std::string(kWantOfRoom)));
}

TEST(BalloonsOfflineTest, ABalloonTakesACpuBackOnAMachineWithoutNodes) {
  const Machine machine = test::MakeMachine({.cores = 2});
  Machine::Parts parts{.cpus = machine.cpus(), .nodes = {}, .allowed = machine.allowed()};
  for (Cpu& cpu : parts.cpus)
    cpu.numa = -1;
  BalloonsNode node("", test::MakeMachine(std::move(parts)));
  const ContainerKey key = *node.Run("a", {.request = 2000});
  node.SetOffline({1});
  EXPECT_EQ(node.CpusOf(key), "0");
  node.SetOffline({});
  EXPECT_EQ(node.CpusOf(key), "0-1");
}

// Components have a minimum size, so the balloon has more CPUs than its container asks for, also
// after it has lost some.
TEST(BalloonsOfflineTest, ACompositeBalloonTakesItsCpusBack) {
  BalloonsNode node(
      "balloonTypes: [{name: part, minCPUs: 2}, {name: pair, components: [{balloonType: part}, "
      "{balloonType: part}]}, {name: other, preferNewBalloons: true}]");
  const ContainerKey key = *node.Run("a", {.request = 1000, .type = "pair"});
  const CpuSet own = node.SetOf(key);
  ASSERT_EQ(own.size(), 4);
  ASSERT_TRUE(node.Run("b", {.request = 12'000, .type = "other"}).ok());
  const CpuSet lost = {own.First(), own.Last()};
  node.SetOffline(lost);
  EXPECT_EQ(node.SetOf(key), own - lost);
  node.SetOffline({own.First()});
  EXPECT_EQ(node.SetOf(key), own - CpuSet{own.First()});
  node.SetOffline({});
  EXPECT_EQ(node.SetOf(key), own);
}

// A section that fits the machine with all of its CPUs is not refused because some are offline.
TEST(BalloonsOfflineTest, WhatFitsWithAllCpusIsNotRefusedWithoutSome) {
  for (const std::string_view type :
       {"{name: x, minCPUs: 2, minBalloons: 8}", "{name: x, minBalloons: 16}",
        "{name: x, maxCPUs: 8, growWithin: package, minBalloons: 2}",
        "{name: x, minCPUs: 12, instances: 100 %}",
        "{name: x, minCPUs: 4, instances: 1 per numa}"}) {
    const std::string section = fmt::format("balloonTypes: [{}]", type);
    BalloonsNode node(section);
    node.SetOffline(Cpus("3,8,12-13,15"));
    const StatusOr<ContainerKey> key = node.Run("a", {.request = 1000, .type = "x"});
    EXPECT_TRUE(key.ok()) << type << ": " << key.status();
    node.SetOffline({});
  }
}

TEST(BalloonsOfflineTest, WhatNeverFitsIsRefusedWithOfflineCpusToo) {
  Machine::Parts parts{
      .cpus = test::N4C16().cpus(), .nodes = test::N4C16().nodes(), .allowed = Cpus("0-14")};
  for (Cpu& cpu : parts.cpus)
    cpu.l3 = -1;
  parts.cpus.back() = Cpu{.id = 15};
  const Machine machine = test::MakeMachine(std::move(parts));
  const auto refusal = [&machine](std::string_view type) {
    return test::CreateError(BalloonsPolicyFactory(), machine, "",
                             fmt::format("balloonTypes: [{}]", type));
  };
  EXPECT_TRUE(refusal("{name: x, cpus: 14-15}").ok());
  EXPECT_TRUE(refusal("{name: x, minCPUs: 2, minBalloons: 8}").ok());
  for (const std::string_view type :
       {"{name: x, cpus: 14-16}", "{name: x, minCPUs: 2, minBalloons: 9}",
        "{name: x, maxCPUs: 10, growWithin: package}", "{name: x, maxCPUs: 1, growWithin: l3cache}",
        "{name: x, maxCPUs: 3, growWithin: numa, minBalloons: 5}",
        "{name: x, minCPUs: 9, instances: 50 %}", "{name: x, instances: 1 per l3}"}) {
    EXPECT_EQ(refusal(type).code(), StatusCode::kInvalidArgument) << type;
  }
}

}  // namespace
}  // namespace resmgr
