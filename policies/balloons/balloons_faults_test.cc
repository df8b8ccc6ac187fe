// SPDX-License-Identifier: Apache-2.0
// What must hold here and fails with nri-plugins.
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

TEST(BalloonsTheirFaultsTest, AMaximumIsNotExceededSilently) {
  BalloonsNode node("balloonTypes: [{name: x, maxCPUs: 8, maxBalloons: 1}]");
  ASSERT_TRUE(node.Run("a", {.request = 6000, .type = "x"}).ok());
  const std::string refusal = node.CpusAt("b", {.request = 4000, .type = "x"});
  EXPECT_THAT(refusal, HasSubstr("no suitable balloon instance available"));
  EXPECT_THAT(refusal, HasSubstr("maxCPUs 8"));
  EXPECT_EQ(Cpus(node.CpusOfBalloon("x[0]")).size(), 6);
}

TEST(BalloonsTheirFaultsTest, AnEmptyBalloonTakesOnlyWhatFitsIt) {
  BalloonsNode node("balloonTypes: [{name: x, maxCPUs: 2, minBalloons: 1}]");
  const std::string refusal = node.CpusAt("a", {.request = 4000, .type = "x"});
  EXPECT_THAT(refusal, HasSubstr("4 CPUs needed"));
  EXPECT_THAT(refusal, HasSubstr("maxCPUs 2"));
}

TEST(BalloonsTheirFaultsTest, AMaximumOfMinusOneRefusesContainers) {
  BalloonsNode node("balloonTypes: [{name: none, maxCPUs: -1, namespaces: [x]}]");
  EXPECT_THAT(node.CpusAt("a", {.namespace_name = "x", .request = 100}), HasSubstr("type none"));
  EXPECT_TRUE(node.Run("b", {.request = 100}).ok());
}

TEST(BalloonsTheirFaultsTest, ReservedOwnsItsCpusFromTheStart) {
  BalloonsNode node("reservedResources: {cpu: \"cpuset:0-2\"}");
  EXPECT_EQ(node.CpusOfBalloon("reserved[0]"), "0-2");
  EXPECT_EQ(node.CpusAt("a", {.request = 13'000}), "3-15");
}

TEST(BalloonsTheirFaultsTest, AResizeInPlaceGrowsNearAndGivesBackTheFarthest) {
  BalloonsNode node("balloonTypes: [{name: x, preferNewBalloons: true}]");
  const ContainerKey a = *node.Run("a", {.request = 1000, .type = "x"});
  ASSERT_TRUE(node.Run("b", {.request = 1000, .type = "x"}).ok());
  EXPECT_EQ(node.CpusOf(a), "0");
  ASSERT_TRUE(node.Resize(a, 3000).ok());
  EXPECT_EQ(node.CpusOf(a), "0,2-3");
  ASSERT_TRUE(node.Resize(a, 5000).ok());
  EXPECT_EQ(node.CpusOf(a), "0,2-5");
  ASSERT_TRUE(node.Resize(a, 2000).ok());
  EXPECT_EQ(node.CpusOf(a), "2-3") << "what is farthest from most goes first";
}

TEST(BalloonsTheirFaultsTest, SwappedTypesMoveNoContainer) {
  const auto section = [](std::string_view first, std::string_view second) {
    return fmt::format(
        "balloonTypes: [{{name: {}, namespaces: [{}], minCPUs: 2}}, {{name: {}, "
        "namespaces: [{}], minCPUs: 2}}]",
        first, first, second, second);
  };
  BalloonsNode node(section("x", "y"));
  ASSERT_TRUE(node.Run("a", {.namespace_name = "x", .request = 100}).ok());
  ASSERT_TRUE(node.Run("b", {.namespace_name = "y", .request = 100}).ok());
  node.ChangeSection(section("y", "x"));
  EXPECT_TRUE(node.Reconcile().empty());
}

TEST(BalloonsTheirFaultsTest, ABalloonThatLeavesANodeLosesItsIdleCpus) {
  BalloonsNode node("balloonTypes: [{name: x, shareIdleCPUsInSame: numa}]");
  const ContainerKey a = *node.Run("a", {.request = 5000, .type = "x"});
  const CpuSet wide = node.SetOf(a);
  EXPECT_EQ(wide.size(), 8);
  ASSERT_TRUE(node.Resize(a, 2000).ok());
  EXPECT_EQ(node.SetOf(a).size(), 4);
}

TEST(BalloonsTheirFaultsTest, LoadsAvoidByNameAndByList) {
  constexpr std::string_view kSection = R"(
loadClasses: [{{name: heavy, level: core{}}}, {{name: light, level: core}}]
balloonTypes:
- {{name: heavy, loads: [heavy]}}
- {{name: light, loads: [light]}}
)";
  BalloonsNode strangers(fmt::format(kSection, ""));
  ASSERT_TRUE(strangers.Run("a", {.request = 1000, .type = "heavy"}).ok());
  EXPECT_EQ(strangers.CpusAt("b", {.request = 1000, .type = "light"}), "1") << "the same core";
  BalloonsNode enemies(fmt::format(kSection, ", avoids: [light]"));
  ASSERT_TRUE(enemies.Run("a", {.request = 1000, .type = "heavy"}).ok());
  EXPECT_EQ(enemies.CpusAt("b", {.request = 1000, .type = "light"}), "2");
}

TEST(BalloonsTheirFaultsTest, UnknownKeysAreErrorsWithASuggestion) {
  const auto error = [](std::string_view section) {
    return std::string(
        Message(test::CreateError(BalloonsPolicyFactory(), test::N4C16(), "0", section)));
  };
  EXPECT_THAT(error("pinCPUs: true"), HasSubstr("did you mean pinCPU?"));
  EXPECT_THAT(error("balloonTypes: [{name: x, maxBallons: 3}]"), HasSubstr("maxBalloons?"));
  EXPECT_EQ(error("PINcpu: true\nBALLOONtypes: [{NAME: x, MINcpus: 1}]"), "");
  EXPECT_THAT(error("balloonTypes: [{name: x}, {name: x}]"), HasSubstr("twice"));
  EXPECT_THAT(error("balloonTypes: [{name: x, components: [{balloonType: y}]}]"),
              HasSubstr("no component type \"y\""));
  EXPECT_THAT(error("balloonTypes: [{name: x, components: [{balloonType: x}]}]"),
              HasSubstr("component of itself"));
  EXPECT_THAT(error("balloonTypes: [{name: x, loads: [y]}]"), HasSubstr("no load class \"y\""));
  EXPECT_THAT(error("reservedResources: {cpu: \"cpuset:0,99\"}"), HasSubstr("99"));
  EXPECT_THAT(error("availableResources: {cpu: \"4\"}"), HasSubstr("cpuset:LIST"));
  EXPECT_THAT(error("balloonTypes: [{name: x, minCPUs: 17, minBalloons: 1}]"), HasSubstr("17"));
}

}  // namespace
}  // namespace resmgr
