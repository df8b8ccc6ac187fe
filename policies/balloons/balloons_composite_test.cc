// SPDX-License-Identifier: Apache-2.0
// Balloons of components: those that are short of CPUs, restarts, and the limits of a
// configuration.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/balloons/testing/balloons_node.h"
#include "policies/balloons/testing/row_configs.h"

namespace resmgr {
namespace {

using test::Apart;
using test::BalloonsNode;
using test::Cpus;
using testing::HasSubstr;

std::string Refused(std::string_view section) {
  return std::string(
      Message(test::CreateError(BalloonsPolicyFactory(), test::N4C16(), "0", section)));
}

constexpr std::string_view kPair =
    "balloonTypes: [{name: n0}, {name: n1}, {name: pair, components: [{balloonType: n0}, "
    "{balloonType: n1}]}]";

TEST(BalloonsCompositeTest, OneWithoutRoomForAllComponentsSharesAnother) {
  BalloonsNode node(kPair, test::MakeMachine({.cores = 4}));
  const ContainerKey d = *node.Run("d", {.request = 2500});
  const ContainerKey p = *node.Run("p", {.request = 500, .type = "pair"});
  EXPECT_EQ(node.PoolOf(p), "default[0]") << "the idle CPU is not one for each component";
  EXPECT_EQ(node.SetOf(p), node.SetOf(d));
  EXPECT_FALSE(node.SetOf(p).empty());
}

TEST(BalloonsCompositeTest, AResizeThatNoRoomAllowsLeavesTheBalloonItsCpus) {
  BalloonsNode node(
      "balloonTypes: [{name: n0}, {name: u}, {name: t, components: [{balloonType: n0}, "
      "{balloonType: n0}, {balloonType: n0}]}]",
      test::MakeMachine({.cores = 8}));
  const ContainerKey t = *node.Run("t", {.request = 3000, .type = "t"});
  ASSERT_TRUE(node.Run("d", {.request = 1000}).ok());
  ASSERT_TRUE(node.Run("u", {.request = 2000, .type = "u"}).ok());
  ASSERT_TRUE(node.Resize(t, 4000).ok());
  EXPECT_EQ(node.PoolOf(t), "t[0]");
  EXPECT_EQ(node.SetOf(t).size(), 3) << "six would be needed, and five are there";
}

TEST(BalloonsCompositeTest, ASwitchOfThePolicyLeavesNoContainerWithoutCpus) {
  BalloonsNode node(kPair, test::MakeMachine({.cores = 4}));
  for (const char* const name : {"d", "p"}) {
    const bool pair = name[0] == 'p';
    const ContainerKey key = node.Add(
        name, {.request = pair ? 500 : 2500, .type = pair ? std::string_view("pair") : ""});
    node.snapshot().At(key).placement.cpus = pair ? Cpus("0-3") : Cpus("0-2");
  }
  node.Reconcile();
  EXPECT_FALSE(node.SetOf(ContainerKey{1}).empty());
  EXPECT_FALSE(node.SetOf(ContainerKey{2}).empty());
}

TEST(BalloonsCompositeTest, ARestartKeepsTheComponentThatWasChosen) {
  BalloonsNode node(test::kPackagesOfNodes);
  ASSERT_TRUE(node.Run("a", {.request = 2000, .type = "any"}).ok());
  const ContainerKey b = *node.Run("b", {.request = 2000, .type = "any"});
  ASSERT_TRUE(node.SetOf(b).IsSubsetOf(Cpus("8-15"))) << node.CpusOf(b);
  node.RestartPolicy();
  EXPECT_TRUE(node.Reconcile().empty());
  ASSERT_TRUE(node.Resize(b, 4000).ok());
  EXPECT_EQ(node.SetOf(b).size(), 4);
  EXPECT_TRUE(node.SetOf(b).IsSubsetOf(Cpus("8-15"))) << node.CpusOf(b);
}

TEST(BalloonsCompositeTest, AContainerThatRanEverywhereDoesNotTakeTheMachine) {
  BalloonsNode node(kPair, test::MakeMachine({.cores = 4}));
  const ContainerKey p = node.Add("p", {.request = 500, .type = "pair"});
  node.snapshot().At(p).placement.cpus = Cpus("0-3");
  node.Reconcile();
  EXPECT_EQ(node.SetOf(p).size(), 2);
}

TEST(BalloonsCompositeTest, ARestartWithoutStateFindsNestedComponentsAgain) {
  BalloonsNode node(R"(
balloonTypes:
- {name: leaf}
- {name: pair, components: [{balloonType: leaf}, {balloonType: leaf}]}
- {name: nested, components: [{balloonType: pair}, {balloonType: pair}]}
)");
  const ContainerKey key = *node.Run("a", {.request = 500, .type = "nested"});
  const std::string before = node.CpusOf(key);
  EXPECT_EQ(node.SetOf(key).size(), 4);
  node.ForgetDecisions();
  node.Reconcile();
  EXPECT_EQ(node.CpusOf(key), before);
}

TEST(BalloonsCompositeTest, AComponentHasTheLeastSizeOfItsType) {
  BalloonsNode node(
      "balloonTypes: [{name: a, minCPUs: 3}, {name: b}, {name: t, minBalloons: 1, components: "
      "[{balloonType: a}, {balloonType: b}]}]");
  EXPECT_EQ(Cpus(node.CpusOfBalloon("t[0]")).size(), 3);
  const ContainerKey big = *node.Run("big", {.request = 8000, .type = "t"});
  EXPECT_EQ(node.SetOf(big).size(), 8);
  ASSERT_TRUE(node.Resize(big, 2000).ok());
  EXPECT_EQ(node.SetOf(big).size(), 4) << "three of a and one of b";
}

// The sizes of components follow their types where only the CPUs of the whole are known.
TEST(BalloonsCompositeTest, ComponentsHaveTheirSizesAgainAfterARestart) {
  BalloonsNode node(
      "balloonTypes: [{name: a, minCPUs: 5, cpuClass: x}, {name: b, cpuClass: y}, "
      "{name: t, components: [{balloonType: a}, {balloonType: b}]}]");
  const ContainerKey key = *node.Run("a", {.request = 6000, .type = "t"});
  ASSERT_EQ(node.CpusOfBalloon("t[0]/a.0"), "0-4");
  node.RestartPolicy();
  EXPECT_TRUE(node.Reconcile().empty());
  EXPECT_EQ(node.CpusOfBalloon("t[0]/a.0"), "0-4");
  // As a former version wrote it.
  std::string& reason = node.snapshot().At(key).placement.reason;
  reason = reason.substr(0, reason.rfind(' ')) + " 0-7";
  node.RestartPolicy();
  node.Reconcile();
  EXPECT_EQ(node.CpusOfBalloon("t[0]/a.0"), "0-4");
  EXPECT_EQ(node.CpusOfBalloon("t[0]/b.1"), "5-7");
  node.ForgetDecisions();
  node.Reconcile();
  EXPECT_EQ(node.CpusOfBalloon("t[0]/a.0"), "0-4");
}

// So no later decision changes them.
TEST(BalloonsCompositeTest, ComponentsHaveEqualSharesOnceAContainerJoinsOrGrows) {
  constexpr std::string_view kTypes =
      "balloonTypes: [{name: a, minCPUs: 5}, {name: b}, "
      "{name: t, components: [{balloonType: a}, {balloonType: b}]}]";
  for (const bool joins : {true, false}) {
    BalloonsNode node(kTypes);
    const ContainerKey other = *node.Run("other", {.request = 1000});
    const ContainerKey key = *node.Run("a", {.request = 1000, .type = "t"});
    ASSERT_EQ(node.SetOf(key).size(), 6) << "each component has a CPU";
    ASSERT_TRUE(joins ? node.CreateIn(key, "b", 4000).ok() : node.Resize(key, 5000).ok());
    EXPECT_EQ(node.SetOf(key).size(), 8) << "five of a, and three of b";
    const std::string cpus = node.CpusOf(key);
    node.Remove(other);
    EXPECT_EQ(node.CpusOf(key), cpus);
  }
  BalloonsNode small(kTypes, test::MakeMachine({.cores = 8}));
  const ContainerKey other = *small.Run("other", {.request = 1000});
  const ContainerKey key = *small.Run("a", {.request = 1000, .type = "t"});
  ASSERT_TRUE(small.CreateIn(key, "b", 4000).ok());
  EXPECT_EQ(small.PoolOf(key), "t[0]");
  EXPECT_EQ(small.SetOf(key).size(), 7) << "six were enough, and one was left";
  small.Remove(other);
  EXPECT_EQ(small.SetOf(key).size(), 8);
}

// Only the placement tells which component the balloon has: both could be it.
TEST(BalloonsCompositeTest, ARestartKeepsAComponentThatNothingElseTells) {
  constexpr std::string_view kTypes =
      "balloonTypes: [{name: a, cpuClass: x}, {name: \"b; own CPUs 3\", cpuClass: y}, "
      "{name: inner, componentCreation: balance-balloons, components: [{balloonType: a}, "
      "{balloonType: \"b; own CPUs 3\"}]}, {name: t, preferNewBalloons: true, "
      "components: [{balloonType: inner}, {balloonType: a}]}]";
  BalloonsNode node(kTypes);
  ASSERT_TRUE(node.Run("first", {.request = 1000, .type = "a"}).ok());
  const ContainerKey key = *node.Run("a", {.request = 2000, .type = "t"});
  constexpr std::string_view kPart = "t[0]/inner.0/b; own CPUs 3.0";
  const std::string cpus = node.CpusOfBalloon(kPart);
  ASSERT_NE(cpus, "none");
  for (int i = 0; i < 2; ++i) {
    node.RestartPolicy();
    EXPECT_TRUE(node.Reconcile().empty());
    EXPECT_EQ(node.CpusOfBalloon(kPart), cpus) << node.PlacementOf(key).reason;
  }
  const Container gone = node.snapshot().At(key);
  node.Remove(key);
  const ContainerKey again = node.Add("a", {.request = 2000, .type = "t"});
  ASSERT_TRUE(node.Place(again, &gone).ok());
  EXPECT_EQ(node.CpusOfBalloon(kPart), cpus) << node.PlacementOf(again).reason;
  node.ChangeSection(
      "balloonTypes: [{name: a}, {name: c}, {name: inner, componentCreation: "
      "balance-balloons, components: [{balloonType: a}, {balloonType: c}]}, "
      "{name: t, components: [{balloonType: inner}, {balloonType: a}]}]");
  node.Reconcile();
  EXPECT_EQ(node.SetOf(again).size(), 2) << "its component is no more";
}

TEST(BalloonsCompositeTest, WhatCameWithAContainerGoesWithItThoughComponentsAreRoundedUp) {
  BalloonsNode node(kPair);
  const ContainerKey first = *node.Run("first", {.request = 500, .type = "pair"});
  const std::string before = node.CpusOf(first);
  const ContainerKey second = *node.CreateIn(first, "second", 2500);
  EXPECT_EQ(node.SetOf(first).size(), 4);
  node.Remove(second);
  EXPECT_EQ(node.CpusOf(first), before);
}

TEST(BalloonsCompositeTest, ComponentsWithOneLoadStayApartFromTheStart) {
  BalloonsNode node(R"(
loadClasses: [{name: heavy, level: core}]
balloonTypes:
- {name: leaf, loads: [heavy]}
- {name: pair, minCPUs: 2, minBalloons: 1, components: [{balloonType: leaf}, {balloonType: leaf}]}
)");
  const CpuSet cpus = Cpus(node.CpusOfBalloon("pair[0]"));
  EXPECT_EQ(cpus.size(), 2);
  EXPECT_EQ(node.machine().WithSiblings(cpus).size(), 4) << "two cores: " << cpus.ToString();
}

TEST(BalloonsCompositeTest, TypesInsideTypesCountForTheFewestInstances) {
  BalloonsNode node(R"(
balloonTypes:
- {name: leaf, preferCloseToDevices: [/sys/devices/system/node/node1]}
- {name: inner, components: [{balloonType: leaf}]}
- {name: deep, components: [{balloonType: inner}]}
- {name: other, preferCloseToDevices: [/sys/devices/system/node/node2]}
- {name: any, componentCreation: balance-balloons,
   components: [{balloonType: deep}, {balloonType: other}]}
)");
  ASSERT_TRUE(node.Run("l", {.request = 1000, .type = "leaf"}).ok());
  const ContainerKey any = *node.Run("a", {.request = 1000, .type = "any"});
  EXPECT_EQ(node.machine().NodesOf(node.SetOf(any)), NodeSet{2}) << "a leaf is inside deep";
}

TEST(BalloonsCompositeTest, ComponentsHaveNoCpusOfTheirOwn) {
  EXPECT_THAT(Refused("balloonTypes: [{name: x, cpus: \"4-5\"}, {name: z, components: "
                      "[{balloonType: x}]}]"),
              HasSubstr("component type \"x\" has cpus"));
  EXPECT_THAT(Refused("balloonTypes: [{name: z, components: [{balloonType: reserved}]}]"),
              HasSubstr("component reserved"));
}

// Each type has the next one twice: 2^30 leaves.
TEST(BalloonsCompositeTest, TypesThatMultiplyAreRefused) {
  std::string types;
  for (int i = 0; i < 30; ++i) {
    types +=
        fmt::format("{{name: t{}, components: [{{balloonType: t{}}}, {{balloonType: t{}}}]}}, ", i,
                    i + 1, i + 1);
  }
  EXPECT_THAT(Refused(fmt::format("balloonTypes: [{}{{name: t30}}]", types)), HasSubstr("levels"));
  std::string parts;
  for (int i = 0; i < 40; ++i)
    parts += "{balloonType: b}, ";
  EXPECT_THAT(Refused(fmt::format("balloonTypes: [{{name: a}}, {{name: b, components: [{}]}}, "
                                  "{{name: c, components: [{}]}}]",
                                  parts, parts)),
              HasSubstr("component of itself"));
  std::string leaves;
  for (int i = 0; i < 40; ++i)
    leaves += "{balloonType: a}, ";
  EXPECT_THAT(Refused(fmt::format("balloonTypes: [{{name: a}}, {{name: b, components: [{}]}}, "
                                  "{{name: c, components: [{}]}}]",
                                  leaves, parts)),
              HasSubstr("1600"));
  EXPECT_EQ(Refused(kPair), "");
}

// Rows of composite balloons, named as in balloons_rows_test.cc.

constexpr std::string_view kNodes = R"(
balloonTypes:
- {name: node0, preferCloseToDevices: [/sys/devices/system/node/node0]}
- {name: node1, preferCloseToDevices: [/sys/devices/system/node/node1]}
- {name: node2, preferCloseToDevices: [/sys/devices/system/node/node2]}
- {name: node3, preferCloseToDevices: [/sys/devices/system/node/node3]}
- name: all
  minCPUs: 4
  components: [{balloonType: node0}, {balloonType: node1}, {balloonType: node2}, {balloonType: node3}]
- name: one-of
  preferNewBalloons: true
  componentCreation: balance-balloons
  components: [{balloonType: node2}, {balloonType: node3}, {balloonType: node0}, {balloonType: node1}]
)";

TEST(BalloonsRowsTest, Test16CompositeBalloons) {
  BalloonsNode node(kNodes);
  const ContainerKey a = *node.Run("a", {.request = 500, .type = "all"});
  const ContainerKey b = *node.CreateIn(a, "b", 500);
  const auto each = [&](int count) {
    for (const NumaNode& its : node.machine().nodes())
      EXPECT_EQ(node.SetOf(a).CountCommon(its.cpus), count) << its.id;
  };
  EXPECT_EQ(node.SetOf(a), node.SetOf(b));
  each(1);
  const ContainerKey nine = *node.CreateIn(a, "nine", 9000);
  each(3);
  node.Remove(nine);
  each(1);
  EXPECT_TRUE(node.Reconcile().empty()) << "it is found again";
}

TEST(BalloonsRowsTest, Test16TheComponentWithTheFewestInstances) {
  BalloonsNode node(kNodes);
  std::vector<ContainerKey> keys;
  for (const int expected : {2, 3, 0, 1}) {
    keys.push_back(*node.Run("c" + std::to_string(expected), {.request = 1000, .type = "one-of"}));
    EXPECT_EQ(node.machine().NodesOf(node.SetOf(keys.back())), NodeSet{expected});
  }
  node.Remove(keys[1]);
  EXPECT_EQ(node.machine().NodesOf(node.SetOf(*node.Run("n", {.request = 1000, .type = "one-of"}))),
            NodeSet{3});
}

TEST(BalloonsRowsTest, Test16ReservedIsAComposite) {
  BalloonsNode node(R"(
reservedResources: {cpu: "2"}
balloonTypes:
- {name: near6, preferCloseToDevices: [/sys/devices/system/cpu/cpu6/cache/index0]}
- {name: reserved, components: [{balloonType: near6}]}
)");
  EXPECT_TRUE(node.SetOf(*node.Run("k", {.namespace_name = "kube-system", .request = 100}))
                  .IsSubsetOf(Cpus("6-7")));
}

TEST(BalloonsRowsTest, Test16TwoNodesOfAPackage) {
  BalloonsNode node(R"(
balloonTypes:
- {name: node2, preferCloseToDevices: [/sys/devices/system/node/node2]}
- {name: node3, preferCloseToDevices: [/sys/devices/system/node/node3]}
- {name: pkg1, preferNewBalloons: true, components: [{balloonType: node2}, {balloonType: node3}]}
)");
  const auto on = [&](ContainerKey key, int id) {
    return node.SetOf(key).CountCommon(node.machine().FindNode(id)->cpus);
  };
  const ContainerKey one = *node.Run("one", {.request = 1000, .type = "pkg1"});
  EXPECT_EQ(std::pair(on(one, 2), on(one, 3)), std::pair(1, 1));
  const ContainerKey four = *node.Run("four", {.request = 4000, .type = "pkg1"});
  EXPECT_EQ(std::pair(on(four, 2), on(four, 3)), std::pair(2, 2));
  EXPECT_TRUE(Apart(node.SetOf(one), node.SetOf(four)));
}

TEST(BalloonsRowsTest, Test16ComponentsOfComponentsCount) {
  BalloonsNode node(test::kPackagesOfNodes);
  ASSERT_TRUE(node.Run("n", {.request = 1000, .type = "node1"}).ok());
  for (const int package : {1, 0, 1}) {
    const CpuSet cpus = node.SetOf(*node.Run(fmt::format("a{}{}", package, node.snapshot().size()),
                                             {.request = 2000, .type = "any"}));
    EXPECT_TRUE(cpus.IsSubsetOf(node.machine().packages()[static_cast<size_t>(package)]))
        << cpus.ToString();
  }
}

}  // namespace
}  // namespace resmgr
