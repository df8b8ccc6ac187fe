// SPDX-License-Identifier: Apache-2.0
// Rules that hold here and fail with nri-plugins: the rows 12c, in their order, and unknown keys.
#include <string>
#include <string_view>
#include <vector>

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

TEST(BalloonsTheirFaultsTest, ARestartWithTwentyBalloonsMovesNoContainer) {
  BalloonsNode node(
      "balloonTypes: [{name: x, preferNewBalloons: true, maxCPUs: 2}, {name: y, "
      "preferNewBalloons: true, shareIdleCPUsInSame: numa}]",
      test::MakeMachine({.packages = 2, .nodes = 2, .cores = 8, .threads = 2}));
  std::vector<ContainerKey> keys;
  for (int i = 0; i < 24; ++i) {
    keys.push_back(*node.Run(fmt::format("c{}", i),
                             {.request = 300 + 200 * (i % 5), .type = i % 2 == 0 ? "x" : "y"}));
  }
  for (const size_t gone : {1U, 6U, 11U, 16U})
    node.Remove(keys[gone]);
  std::vector<std::string> before;
  for (const Zone& zone : node.policy().Zones(node.snapshot()))
    before.push_back(zone.name + " " + zone.cpus.ToString());
  EXPECT_EQ(before.size(), 23u) << "twenty, two that always exist, and what is idle";
  node.RestartPolicy();
  EXPECT_TRUE(node.Reconcile().empty());
  std::vector<std::string> after;
  for (const Zone& zone : node.policy().Zones(node.snapshot()))
    after.push_back(zone.name + " " + zone.cpus.ToString());
  EXPECT_EQ(after, before) << "numbers and CPUs are the same";
}

TEST(BalloonsTheirFaultsTest, OnlyAnotherNiceValueIsReadAndMovesNothing) {
  const auto section = [](int nice) {
    return fmt::format(
        "schedulingClasses: [{{name: fast, policy: other, nice: {}}}]\n"
        "balloonTypes: [{{name: x, schedulingClass: fast}}]",
        nice);
  };
  const auto value = [&](int nice) {
    const StatusOr<ConfigNode> node = ParseYaml(section(nice), "a.yaml");
    return ReadBalloonsOptions(&*node)->raw.at("schedulingClasses").items[0].entries[2].value.text;
  };
  EXPECT_EQ(value(-3), "-3");
  EXPECT_EQ(value(5), "5");
  BalloonsNode node(section(-3));
  ASSERT_TRUE(node.Run("a", {.request = 100, .type = "x"}).ok());
  node.ChangeSection(section(5));
  EXPECT_TRUE(node.Reconcile().empty());
}

TEST(BalloonsTheirFaultsTest, ARefusedConfigurationLeavesAllAsItIs) {
  BalloonsNode node("balloonTypes: [{name: x, preferNewBalloons: true}]");
  const ContainerKey a = *node.Run("a", {.request = 1000, .type = "x"});
  const ContainerKey b = *node.Run("b", {.request = 2000, .type = "x"});
  const std::string before = node.CpusOf(a) + " " + node.CpusOf(b);
  EXPECT_FALSE(test::CreateError(BalloonsPolicyFactory(), node.machine(), "0",
                                 "balloonTypes: [{name: x, minCPUs: 33, maxCPUs: 32}]")
                   .ok());
  ASSERT_TRUE(node.Run("c", {.request = 1000, .type = "x"}).ok()) << "the old one is in force";
  EXPECT_EQ(node.CpusOf(a) + " " + node.CpusOf(b), before);
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

// Nothing would be grouped, and nobody would be told.
TEST(BalloonsTheirFaultsTest, GroupsByKeysThatNoContainerHasAreErrors) {
  const auto error = [](std::string_view group) {
    return std::string(Message(
        test::CreateError(BalloonsPolicyFactory(), test::N4C16(), "0",
                          fmt::format("balloonTypes: [{{name: x, groupBy: \"{}\"}}]", group))));
  };
  EXPECT_THAT(error("${pod/lables/app}"),
              HasSubstr("x: groupBy: there is no key \"pod/lables/app\""));
  EXPECT_THAT(error("a-$pod/nmae"), HasSubstr("there is no key \"pod/nmae\""));
  EXPECT_THAT(error("a-${pod/name"), HasSubstr("x: groupBy: \"pod/name\" has ${ without }"));
  const BalloonsNode node("balloonTypes: [{name: x, groupBy: \"$$-${pod/labels/a/b}-$name\"}]");
  EXPECT_EQ(node.machine().online().size(), 16);
}

TEST(BalloonsTheirFaultsTest, UnknownOperatorsAreToldWithThoseThatThereAre) {
  EXPECT_THAT(
      std::string(Message(test::CreateError(
          BalloonsPolicyFactory(), test::N4C16(), "0",
          "balloonTypes: [{name: x, matchExpressions: [{key: name, operator: Exist, "
          "values: []}]}]"))),
      AllOf(HasSubstr("\"Exist\" is not one of Equals, "), HasSubstr("did you mean Exists?")));
}

Status ErrorOfTypes(const std::string& types) {
  return test::CreateError(BalloonsPolicyFactory(), test::N4C16(), "0", "balloonTypes: " + types);
}

TEST(BalloonsConfigErrorsTest, NamesThatCannotBeShownAreRefused) {
  for (const std::string& name :
       {std::string("\"a\\nb\""), std::string("\"a\\u0007\""), std::string(201, 'x')}) {
    EXPECT_THAT(std::string(Message(ErrorOfTypes("[{name: " + name + "}]"))),
                HasSubstr("must be printable, and 200 bytes at most"));
  }
  EXPECT_TRUE(ErrorOfTypes("[{name: \"b\u00e4lle\"}, {name: " + std::string(200, 'x') + "}]").ok());
}

TEST(BalloonsConfigErrorsTest, ALeastSizeBeyondTheCpusOfATypeIsRefused) {
  EXPECT_THAT(std::string(Message(ErrorOfTypes("[{name: x, cpus: \"2-3\", minCPUs: 4}]"))),
              HasSubstr("minCPUs: is 4, more than cpus has (2-3)"));
  EXPECT_TRUE(ErrorOfTypes("[{name: x, cpus: \"2-3\", minCPUs: 4, maxCPUs: 6}]").ok());
  EXPECT_TRUE(ErrorOfTypes("[{name: x, cpus: \"2-3\", minCPUs: 2}]").ok());
}

TEST(BalloonsConfigErrorsTest, ATypeThatIsThereTwiceIsToldOnce) {
  const std::string error(Message(ErrorOfTypes("[{name: x}, {name: x}, {name: x}]")));
  EXPECT_THAT(error, HasSubstr("type \"x\" is there twice"));
  EXPECT_EQ(error.find("twice"), error.rfind("twice")) << error;
}

TEST(BalloonsConfigErrorsTest, AnUnknownTypeIsRefusedWithThoseThatThereAre) {
  BalloonsNode node("balloonTypes: [{name: fast}, {name: slow}]");
  EXPECT_THAT(node.CpusAt("a", {.request = 100, .type = "claim"}),
              testing::EndsWith("there is no such type; there are: reserved, fast, slow, default"));
  std::string many;
  for (int i = 0; i < 20; ++i)
    many += fmt::format("{{name: t{}}}, ", i);
  BalloonsNode other("balloonTypes: [" + many + "]");
  EXPECT_THAT(other.CpusAt("a", {.request = 100, .type = "x"}),
              testing::EndsWith("t7, t8 and 12 more"));
}

}  // namespace
}  // namespace resmgr
