// SPDX-License-Identifier: Apache-2.0
// Containers that the scheduler was right to send, where no whole CPUs are left for them.
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/allocator/want_of_room.h"
#include "policies/balloons/testing/balloons_node.h"

namespace resmgr {
namespace {

using test::Apart;
using test::BalloonsNode;
using testing::HasSubstr;
using testing::Not;
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

}  // namespace
}  // namespace resmgr
