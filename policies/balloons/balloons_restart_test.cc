// SPDX-License-Identifier: Apache-2.0
// Restarts, previews, further attempts, resizes, and cases without an option in nri-plugins.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/allocator/want_of_room.h"
#include "pkg/config/print_config.h"
#include "policies/balloons/testing/balloons_node.h"

namespace resmgr {
namespace {

using test::BalloonsNode;
using test::Cpus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kMixed = R"(
reservedResources: {cpu: "1"}
balloonTypes:
- {name: new, preferNewBalloons: true}
- {name: sharing, preferNewBalloons: true, shareIdleCPUsInSame: numa, allocatorTopologyBalancing: true}
- {name: hidden, minCPUs: 2, hideHyperthreads: true}
)";

void Fill(BalloonsNode& node) {
  int number = 0;
  for (const std::string_view type : {"new", "sharing", "", "hidden", "new", "sharing", ""}) {
    const std::string name = "c" + std::to_string(++number);
    ASSERT_TRUE(node.Run(name, {.request = 300 * number, .type = type}).ok()) << name;
  }
  ASSERT_TRUE(node.Run("system", {.namespace_name = "kube-system", .request = 100}).ok());
}

TEST(BalloonsRestartTest, ARestartWithStateMovesNothingAndKeepsNumbers) {
  BalloonsNode node(kMixed);
  Fill(node);
  for (int i = 0; i < 3; ++i) {
    node.RestartPolicy();
    EXPECT_TRUE(node.Reconcile().empty());
  }
  const std::vector<Zone> zones = node.policy().Zones(node.snapshot());
  node.RestartPolicy();
  node.Reconcile();
  for (const Zone& zone : zones)
    EXPECT_EQ(node.CpusOfBalloon(zone.name), zone.cpus.ToString()) << zone.name;
}

TEST(BalloonsRestartTest, AListLeavesExplanationsAndTheOrderOfBalloons) {
  BalloonsNode node(
      "balloonTypes: [{name: x, preferNewBalloons: true, fillOrder: firstFree, maxBalloons: 2, "
      "preferCloseToDevices: [/sys/devices/system/node/node2]}]");
  const ContainerKey first = *node.Run("first", {.request = 2000, .type = "x"});
  const ContainerKey second = *node.Run("second", {.request = 1500, .type = "x"});
  node.Remove(first);
  const ContainerKey third = *node.Run("third", {.request = 2500, .type = "x"});
  ASSERT_EQ(node.PoolOf(second) + " " + node.PoolOf(third), "x[1] x[0]");
  const std::vector<std::string> explained = node.policy().Explain(third);
  ASSERT_THAT(explained, ElementsAre(HasSubstr("x[1]: 1500 of"), HasSubstr("not followed")));
  EXPECT_TRUE(node.Reconcile().empty());
  EXPECT_EQ(node.policy().Explain(third), explained);
  const ContainerKey next = *node.Run("next", {.request = 100, .type = "x"});
  EXPECT_EQ(node.PoolOf(next), "x[1]") << "the older one";
}

TEST(BalloonsRestartTest, AFormerPlaceIsFreeIfNoOtherBalloonHasItsNameOrCpus) {
  BalloonsNode node("balloonTypes: [{name: x, preferNewBalloons: true}]");
  const ContainerKey key = *node.Run("c", {.request = 4000, .type = "x"});
  const Placement four = node.PlacementOf(key);
  ASSERT_TRUE(node.Resize(key, 2000).ok());
  EXPECT_TRUE(node.policy().MayReturn(key, four));
  const ContainerKey big = *node.Run("big", {.request = 13'000, .type = "x"});
  EXPECT_FALSE(node.policy().MayReturn(key, four));
  node.Remove(big);
  node.Remove(key);
  EXPECT_TRUE(node.policy().MayReturn(key, four));
  const ContainerKey other = *node.Run("other", {.request = 100, .type = "x"});
  ASSERT_EQ(node.PoolOf(other), four.pool);
  EXPECT_FALSE(node.policy().MayReturn(key, four));
  EXPECT_TRUE(node.policy().MayReturn(other, four)) << "it has taken the place of the container";
}

TEST(BalloonsRestartTest, ARestartWithoutStateMovesNoContainer) {
  BalloonsNode node(kMixed);
  Fill(node);
  std::vector<std::string> before;
  node.snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    before.push_back(node.CpusOf(container.key));
  });
  node.ForgetDecisions();
  node.Reconcile();
  std::vector<std::string> after;
  node.snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    after.push_back(node.CpusOf(container.key));
    EXPECT_NE(container.placement.pool, "") << container.name;
  });
  EXPECT_EQ(after, before);
  EXPECT_TRUE(node.Reconcile().empty());
}

TEST(BalloonsRestartTest, TheFirstStartPlacesContainersThatRunEverywhere) {
  BalloonsNode node(kMixed);
  for (const char* const name : {"a", "b"}) {
    const ContainerKey key = node.Add(name, {.request = 2000, .type = "new"});
    node.snapshot().At(key).placement.cpus = Cpus("0-15");
  }
  EXPECT_EQ(node.Reconcile().changes.size(), 2u);
  const auto [a, b] = std::pair(node.PoolOf(ContainerKey{1}), node.PoolOf(ContainerKey{2}));
  EXPECT_EQ(a, "new[0]");
  EXPECT_EQ(b, "new[1]");
}

TEST(BalloonsRestartTest, AnotherConfigurationThatIsRefusedChangesNothing) {
  EXPECT_FALSE(test::CreateError(BalloonsPolicyFactory(), test::N4C16(), "0",
                                 "balloonTypes: [{name: x, minCPUs: 4, maxCPUs: 2}]")
                   .ok());
}

TEST(BalloonsPolicyTest, AllocateThenReleaseRestoresTheState) {
  BalloonsNode node(kMixed);
  Fill(node);
  const auto zones = [&] {
    std::string text;
    for (const Zone& zone : node.policy().Zones(node.snapshot()))
      text += fmt::format("{} {} {}\n", zone.name, zone.cpus.ToString(), zone.containers);
    return text;
  };
  const std::string before = zones();
  for (const std::string_view type : {"new", "sharing", "", "hidden"}) {
    const ContainerKey key = *node.Run("more", {.request = 700, .type = type});
    node.Remove(key);
    EXPECT_EQ(zones(), before) << type;
  }
}

TEST(BalloonsPolicyTest, AClonesChangesStayThere) {
  BalloonsNode node(kMixed);
  Fill(node);
  const std::unique_ptr<Policy> clone = node.policy().Clone();
  const ContainerKey key = node.Add("x", {.request = 100, .type = "new"});
  ASSERT_TRUE(
      clone->Allocate(node.snapshot(), node.snapshot().PodOf(key), node.snapshot().At(key), nullptr)
          .ok());
  EXPECT_EQ(node.CpusOfBalloon("new[2]"), "none");
}

TEST(BalloonsPolicyTest, ANewAttemptKeepsItsPlace) {
  BalloonsNode node(kMixed);
  Fill(node);
  const ContainerKey first = *node.Run("first", {.request = 1500, .type = "new"});
  const std::string cpus = node.CpusOf(first);
  const std::string pool = node.PoolOf(first);
  const Container held = node.snapshot().At(first);
  const Pod pod = node.snapshot().PodOf(first);
  node.snapshot().Remove(first);
  const ContainerKey second = node.Add("first", {.request = 1500, .type = "new"});
  ASSERT_TRUE(node.Place(second, &held).ok());
  EXPECT_EQ(node.CpusOf(second), cpus);
  const Container gone = node.snapshot().At(second);
  node.Remove(second);
  const ContainerKey third = node.Add("first", {.request = 1500, .type = "new"});
  ASSERT_TRUE(node.Place(third, &gone).ok());
  EXPECT_EQ(node.CpusOf(third), cpus) << "its balloon was gone";
  EXPECT_EQ(node.PoolOf(third), pool);
}

// Its former CPU is idle, but no room is left there.
TEST(BalloonsPolicyTest, ANewAttemptHasRoomInOnePartOfTheMachine) {
  BalloonsNode node(
      "balloonTypes: [{name: x, maxCPUs: 4, growWithin: numa}, "
      "{name: y, preferCloseToDevices: [/sys/devices/system/cpu/cpu3]}]",
      test::MakeMachine({.nodes = 2, .cores = 4}));
  const ContainerKey a = *node.Run("a", {.request = 1000, .type = "x"});
  ASSERT_EQ(node.CpusOf(a), "0");
  const Container gone = node.snapshot().At(a);
  node.Remove(a);
  ASSERT_EQ(node.CpusAt("y", {.request = 1000, .type = "y"}), "3");
  const ContainerKey again = node.Add("a", {.request = 1000, .type = "x"});
  ASSERT_TRUE(node.Place(again, &gone).ok());
  ASSERT_TRUE(node.Resize(again, 4000).ok());
  EXPECT_EQ(node.CpusOf(again), "4-7");
}

TEST(BalloonsPolicyTest, ANewAttemptWhoseBalloonIsGoneJoinsItsGroup) {
  for (const std::string_view type :
       {"groupBy: \"${pod/labels/g}\", preferNewBalloons: true", "preferPerNamespaceBalloon: true",
        "groupBy: \"${pod/labels/g}\", preferNewBalloons: true, minBalloons: 2"}) {
    SCOPED_TRACE(type);
    BalloonsNode node(fmt::format("balloonTypes: [{{name: x, {}}}]", type));
    const auto add = [&node](std::string_view name, std::string_view group) {
      const ContainerKey key =
          node.Add(name, {.namespace_name = group, .request = 1000, .type = "x"});
      node.snapshot().PodOf(key).labels.Set("g", std::string(group));
      return key;
    };
    const ContainerKey a = *node.Place(add("a", "g1"));
    const Container gone = node.snapshot().At(a);
    ASSERT_EQ(node.PoolOf(a), "x[0]");
    node.Remove(a);
    const ContainerKey z = *node.Place(add("z", "g2"));
    const ContainerKey b = *node.Place(add("b", "g1"));
    ASSERT_EQ(node.PoolOf(b), "x[1]");
    node.Remove(z);
    const ContainerKey again = add("a", "g1");
    ASSERT_TRUE(node.Place(again, &gone).ok());
    EXPECT_EQ(node.PoolOf(again), node.PoolOf(b));
  }
}

// The balloon had CPUs for both containers of the pod.
TEST(BalloonsPolicyTest, ANewAttemptTakesNoMoreThanItNeeds) {
  BalloonsNode node("balloonTypes: [{name: x}]");
  const ContainerKey a = *node.Run("a", {.request = 1000, .type = "x"});
  const ContainerKey b = *node.CreateIn(a, "b", 3000);
  const Container gone = node.snapshot().At(a);
  const CpuSet former = node.SetOf(a);
  ASSERT_EQ(former.size(), 4);
  node.Remove(a);
  node.Remove(b);
  const ContainerKey again = node.Add("a", {.request = 1000, .type = "x"});
  ASSERT_TRUE(node.Place(again, &gone).ok());
  EXPECT_EQ(node.SetOf(again).size(), 1);
  EXPECT_TRUE(node.SetOf(again).IsSubsetOf(former));
}

TEST(BalloonsPolicyTest, ANewAttemptOfAContainerThatWaitsForRoomGoesOnWaiting) {
  BalloonsNode node("balloonTypes: [{name: x}, {name: y}]", test::MakeMachine({.cores = 3}));
  ASSERT_TRUE(node.Run("x", {.request = 100, .type = "x"}).ok());
  ASSERT_TRUE(node.Run("y", {.request = 100, .type = "y"}).ok());
  const ContainerKey d = *node.Run("d", {.request = 2500});
  const std::string reason = node.PlacementOf(d).reason;
  ASSERT_THAT(reason, StartsWith(std::string(kWantOfRoom)));
  const Container held = node.snapshot().At(d);
  node.snapshot().Remove(d);
  const ContainerKey again = node.Add("d", {.request = 2500});
  ASSERT_TRUE(node.Place(again, &held).ok());
  EXPECT_EQ(node.PlacementOf(again).reason, reason);
}

TEST(BalloonsPolicyTest, ReasonAndExplanationTellTheRules) {
  BalloonsNode node(
      "balloonTypes: [{name: x, namespaces: [n], preferNewBalloons: true, cpuClass: turbo, "
      "preferCloseToDevices: [/sys/devices/system/node/node2]}]");
  ASSERT_TRUE(node.Run("a", {.namespace_name = "n", .request = 3000}).ok());
  const ContainerKey b = *node.Run("b", {.namespace_name = "n", .request = 2000});
  EXPECT_EQ(node.PlacementOf(b).reason,
            "type x by namespace n; new balloon; own CPUs " + node.CpusOf(b));
  EXPECT_THAT(node.policy().Explain(b),
              ElementsAre("x[0]: 3000 of 3000m requested, needs 5 CPUs, could have 16: can grow",
                          "x[1]: not followed: close to /sys/devices/system/node/node2"));
}

// The output of `config show` is the same configuration.
TEST(BalloonsPolicyTest, TheCompleteSectionIsReadBack) {
  const StatusOr<ConfigNode> section = ParseYaml(R"(
reservedResources: {cpu: "cpuset:0"}
preserve: {matchExpressions: [{key: name, operator: Exists}]}
loadClasses: [{name: l, level: core}]
balloonTypes:
- {name: x, cpus: "4-5", matchExpressions: [{key: name, operator: In, values: [a]}], loads: [l]}
- {name: y, minCPUs: 1, instances: 1 per numa, sizeBy: limit}
- {name: z, components: [{balloonType: y}, {balloonType: y}]}
)",
                                                 "a.yaml");
  ASSERT_TRUE(section.ok());
  std::vector<ConfigKey> keys;
  ASSERT_TRUE(ReadBalloonsOptions(&*section, &keys).ok());
  const ConfigNode complete = ValuesOf(keys);
  std::vector<ConfigKey> again;
  const StatusOr<BalloonsOptions> options = ReadBalloonsOptions(&complete, &again);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(PrintNode(ValuesOf(again)), PrintNode(complete));
  EXPECT_TRUE(options->reserved.has_value());
  EXPECT_EQ(options->preserve.size(), 1u);
  EXPECT_EQ(options->types[1].cpus, Cpus("4-5"));
  EXPECT_EQ(options->types[2].instances.per, BalloonLevel::kNuma);
  EXPECT_EQ(options->types[3].components.size(), 2u);
}

TEST(BalloonsPolicyTest, UnknownTypesInAnnotationsAreRefused) {
  BalloonsNode node("");
  const StatusOr<ContainerKey> key = node.Run("a", {.request = 100, .type = "nothing"});
  EXPECT_EQ(key.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(key.status())),
              HasSubstr("no balloon for annotation \"nothing\""));
  const ContainerKey plain = node.Add("b", {.request = 100});
  node.snapshot().PodOf(plain).annotations.Set("pool.podpools.cri-resource-manager.intel.com/pod",
                                               "nothing");
  ASSERT_TRUE(node.Place(plain).ok()) << "a pool of podpools falls back to the default";
  EXPECT_EQ(node.PoolOf(plain), "default[0]");
}

TEST(BalloonsPolicyTest, AnnotationsOfBothDomainsCount) {
  BalloonsNode node("balloonTypes: [{name: x}, {name: y}]");
  const ContainerKey key = node.Add("a", {.request = 100});
  StringMap& annotations = node.snapshot().PodOf(key).annotations;
  annotations.Set("balloon.balloons.cri-resource-manager.intel.com/pod", "x");
  annotations.Set("balloon.balloons.resource-policy.nri.io/container.a", "y");
  ASSERT_TRUE(node.Place(key).ok());
  EXPECT_EQ(node.PoolOf(key), "y[0]");
}

TEST(BalloonsPolicyTest, ReservedIsForPrivilegedNamespaces) {
  BalloonsNode node("reservedResources: {cpu: \"2\"}");
  const ContainerKey key = *node.Run("a", {.request = 100, .type = "reserved"});
  EXPECT_EQ(node.PoolOf(key), "default[0]");
  EXPECT_THAT(node.policy().Unheeded(node.snapshot().PodOf(key), node.snapshot().At(key)),
              ElementsAre(HasSubstr("balloon.balloons")));
}

// 16.7: a container of another type needs a CPU, and two small balloons hold two.
TEST(BalloonsRoomTest, SmallBalloonsOfOneTypeJoinToMakeRoom) {
  BalloonsNode node("balloonTypes: [{name: x, preferNewBalloons: true}]",
                    test::MakeMachine({.cores = 3}));
  const ContainerKey a = *node.Run("a", {.request = 100, .type = "x"});
  const ContainerKey b = *node.Run("b", {.request = 100, .type = "x"});
  ASSERT_TRUE(node.Run("d", {.request = 1000}).ok());
  ASSERT_NE(node.PoolOf(a), node.PoolOf(b));
  const ContainerKey e = *node.Run("e", {.request = 1000});
  EXPECT_EQ(node.PoolOf(a), node.PoolOf(b));
  EXPECT_EQ(node.SetOf(e).size(), 2);
  EXPECT_THAT(node.PlacementOf(a).reason + node.PlacementOf(b).reason, HasSubstr("to make room"));
}

TEST(BalloonsRoomTest, NoBudgetNoMoves) {
  BalloonsNode node(
      "{moveBudget: 0, whenShort: refuse, balloonTypes: [{name: x, preferNewBalloons: true}]}",
      test::MakeMachine({.cores = 3}));
  ASSERT_TRUE(node.Run("a", {.request = 100, .type = "x"}).ok());
  ASSERT_TRUE(node.Run("b", {.request = 100, .type = "x"}).ok());
  ASSERT_TRUE(node.Run("d", {.request = 1000}).ok());
  EXPECT_FALSE(node.Run("e", {.request = 1000}).ok());
}

// Every balloon is rounded up to whole CPUs, which the scheduler does not know.
TEST(BalloonsRoomTest, WhatTheSchedulerSendsIsTakenAndGetsCpusLater) {
  BalloonsNode node("balloonTypes: [{name: x}, {name: y}]", test::MakeMachine({.cores = 3}));
  const ContainerKey x = *node.Run("x", {.request = 100, .type = "x"});
  ASSERT_TRUE(node.Run("y", {.request = 100, .type = "y"}).ok());
  const ContainerKey d = *node.Run("d", {.request = 2500});
  EXPECT_THAT(node.PlacementOf(d).reason, StartsWith(std::string(kWantOfRoom)));
  EXPECT_FALSE(node.SetOf(d).empty());
  EXPECT_FALSE(node.Run("more", {.request = 1000}).ok()) << "no scheduler would send it";
  node.RestartPolicy();
  EXPECT_TRUE(node.Reconcile().empty());
  node.Remove(x);
  EXPECT_EQ(node.SetOf(d).size(), 2) << "what becomes free goes there";
}

TEST(BalloonsRoomTest, AContainerElsewhereReturnsByARebalance) {
  BalloonsNode node("balloonTypes: [{name: x}, {name: y}, {name: z}]",
                    test::MakeMachine({.cores = 2}));
  const ContainerKey x = *node.Run("x", {.request = 100, .type = "x"});
  ASSERT_TRUE(node.Run("y", {.request = 100, .type = "y"}).ok());
  const ContainerKey z = *node.Run("z", {.request = 100, .type = "z"});
  EXPECT_NE(node.PoolOf(z), "z[0]");
  node.Remove(x);
  node.Rebalance();
  EXPECT_EQ(node.PoolOf(z), "z[0]");
  EXPECT_TRUE(node.Rebalance().empty());
}

TEST(BalloonsAdditionsTest, SizeByLimitAndBetween) {
  BalloonsNode node(
      "balloonTypes: [{name: l, sizeBy: limit}, {name: b, sizeBy: between}, {name: r}]");
  const auto size = [&](std::string_view type) {
    const ContainerKey key = *node.Run(type, {.request = 1000, .type = type, .limit = 4000});
    return node.SetOf(key).size();
  };
  EXPECT_EQ(size("l"), 4);
  EXPECT_EQ(size("b"), 3);
  EXPECT_EQ(size("r"), 1);
}

TEST(BalloonsAdditionsTest, Overcommit) {
  BalloonsNode node("balloonTypes: [{name: x, maxCPUs: 2, maxBalloons: 1, maxOvercommit: 150}]");
  const ContainerKey a = *node.Run("a", {.request = 1500, .type = "x"});
  EXPECT_EQ(node.SetOf(a).size(), 1);
  ASSERT_TRUE(node.Run("b", {.request = 1500, .type = "x"}).ok());
  EXPECT_EQ(node.SetOf(a).size(), 2);
  EXPECT_FALSE(node.Run("c", {.request = 100, .type = "x"}).ok());
}

TEST(BalloonsAdditionsTest, TypesWithCpusOfTheirOwn) {
  BalloonsNode node("balloonTypes: [{name: x, cpus: \"4-5,8\"}]");
  EXPECT_EQ(node.CpusOfBalloon("x[0]"), "4-5,8");
  EXPECT_EQ(node.CpusAt("d", {.request = 12'000}), "0-3,6-7,10-15");
  EXPECT_EQ(node.CpusAt("a", {.request = 100, .type = "x"}), "4-5,8");
  EXPECT_FALSE(node.Run("b", {.request = 3000, .type = "x"}).ok());
  node.RestartPolicy();
  EXPECT_TRUE(node.Reconcile().empty());
}

// The balloon has the CPUs in any case, so its containers may have them.
TEST(BalloonsAdditionsTest, ALimitBelowTheListedCpusHasNoEffect) {
  BalloonsNode node(
      "{reservedResources: {cpu: \"cpuset:0-3\"}, balloonTypes: [{name: reserved, maxCPUs: 2}]}");
  EXPECT_EQ(node.CpusAt("a", {.namespace_name = "kube-system", .request = 3000}), "0-3");
  EXPECT_FALSE(node.Run("b", {.namespace_name = "kube-system", .request = 3000}).ok());
}

TEST(BalloonsAdditionsTest, OneBalloonPerNode) {
  BalloonsNode node("balloonTypes: [{name: x, minCPUs: 1, instances: 1 per numa}]");
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(node.machine().NodesOf(Cpus(node.CpusOfBalloon(fmt::format("x[{}]", i)))),
              NodeSet{i});
  }
  CpuSet all;
  for (const char* const name : {"a", "b", "c", "d"}) {
    const CpuSet cpus = node.SetOf(*node.Run(name, {.request = 3000, .type = "x"}));
    EXPECT_EQ(node.machine().NodesOf(cpus).size(), 1);
    all |= cpus;
  }
  EXPECT_EQ(all.size(), 12);
}

TEST(BalloonsAdditionsTest, OneReservedBalloonPerPackage) {
  BalloonsNode node(
      "{reservedResources: {cpu: \"cpuset:0,8\"}, balloonTypes: [{name: reserved, instances: 1 per "
      "package}]}");
  EXPECT_EQ(node.CpusOfBalloon("reserved[0]"), "0");
  EXPECT_EQ(node.CpusOfBalloon("reserved[1]"), "8");
  const ContainerKey a = *node.Run("a", {.namespace_name = "kube-system"});
  const ContainerKey b = *node.Run("b", {.namespace_name = "kube-system"});
  EXPECT_FALSE(node.SetOf(a).Intersects(node.SetOf(b)));
}

TEST(BalloonsAdditionsTest, RoomToGrowWithinANodeIsKept) {
  BalloonsNode node("balloonTypes: [{name: x, maxCPUs: 4, growWithin: numa}]");
  const ContainerKey a = *node.Run("a", {.request = 1000, .type = "x"});
  EXPECT_EQ(node.SetOf(a).size(), 1);
  ASSERT_TRUE(node.Run("d", {.request = 12'000}).ok());
  ASSERT_TRUE(node.Resize(a, 4000).ok());
  EXPECT_EQ(node.SetOf(a).size(), 4);
  EXPECT_EQ(node.machine().NodesOf(node.SetOf(a)).size(), 1);
}

TEST(BalloonsAdditionsTest, PodPools) {
  BalloonsNode node(R"(
reservedResources: {cpu: "cpuset:0"}
balloonTypes: [{name: pool, minCPUs: 2, maxCPUs: 2, instances: 60 %, maxPods: 2, fillOrder: packed}]
)");
  EXPECT_EQ(Cpus(node.CpusOfBalloon("pool[3]")).size(), 2) << "60 % of 15 CPUs are 9";
  EXPECT_EQ(node.CpusOfBalloon("pool[4]"), "none");
  std::vector<std::string> pools;
  for (const char* const name : {"a", "b", "c"})
    pools.push_back(node.PoolOf(*node.Run(name, {.request = 500, .type = "pool"})));
  EXPECT_THAT(pools, ElementsAre("pool[0]", "pool[0]", "pool[1]"));
}

TEST(BalloonsAdditionsTest, BestEffortContainersSpread) {
  BalloonsNode node("balloonTypes: [{name: x, maxCPUs: 1, minBalloons: 3, maxBalloons: 3}]");
  std::set<std::string> pools;
  for (const char* const name : {"a", "b", "c"})
    pools.insert(node.PoolOf(*node.Run(name, {.type = "x"})));
  EXPECT_EQ(pools.size(), 3u);
}

TEST(BalloonsPolicyTest, PolicyLevelReservedCpusCountToo) {
  BalloonsNode node("", test::N4C16(), "0-1");
  EXPECT_EQ(node.CpusOfBalloon("reserved[0]"), "0-1");
}

// Restarts after which less is known than before.

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

// The components differ in size, or another one than the first is there.
TEST(BalloonsAdoptionTest, SizesOfComponentsAreFoundWithoutState) {
  constexpr const char* kTypes =
      "balloonTypes: [{name: c}, {name: d, minCPUs: 3}, "
      "{name: both, components: [{balloonType: d}, {balloonType: c}]}, "
      "{name: either, componentCreation: balance-balloons, "
      "components: [{balloonType: c}, {balloonType: d}]}]";
  BalloonsNode both(kTypes);
  ExpectThatItStays(both, *both.Run("a", {.request = 500, .type = "both"}), 4);
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

// A room that was chosen anew would have the CPU of the balloon that has no containers.
TEST(BalloonsAdoptionTest, RoomsAndWithThemEmptyBalloonsStayAtARestart) {
  BalloonsNode node(
      "balloonTypes: [{name: e, minBalloons: 1, minCPUs: 1}, "
      "{name: x, maxCPUs: 3, growWithin: numa}, {name: y}]",
      test::MakeMachine({.cores = 8}));
  ASSERT_EQ(node.CpusOfBalloon("e[0]"), "0");
  const ContainerKey first = *node.Run("first", {.request = 1000, .type = "y"});
  const ContainerKey key = *node.Run("a", {.request = 1000, .type = "x"});
  ASSERT_EQ(node.CpusOf(key), "2");
  node.Remove(first);
  for (int i = 0; i < 2; ++i) {
    node.RestartPolicy();
    EXPECT_TRUE(node.Reconcile().empty());
    EXPECT_EQ(node.CpusOfBalloon("e[0]"), "0");
  }
  EXPECT_EQ(node.CpusAt("others", {.request = 4000, .type = "y"}), "1,5-7");
  const Container gone = node.snapshot().At(key);
  node.Remove(key);
  const ContainerKey again = node.Add("a", {.request = 1000, .type = "x"});
  ASSERT_TRUE(node.Place(again, &gone).ok());
  ASSERT_TRUE(node.Resize(again, 3000).ok());
  EXPECT_EQ(node.CpusOf(again), "2-4");
}

// The reason may be from another configuration, or older than the CPUs on which others run.
TEST(BalloonsAdoptionTest, ARoomThatIsNoneAnyMoreIsChosenAnew) {
  const auto section = [](std::string_view more) {
    return fmt::format("balloonTypes: [{{name: x, {}}}, {{name: y}}]", more);
  };
  for (const std::string_view more :
       {"maxCPUs: 2, growWithin: numa", "maxCPUs: 3", "maxCPUs: 3, growWithin: package"}) {
    SCOPED_TRACE(more);
    BalloonsNode node(section("maxCPUs: 3, growWithin: package"),
                      test::MakeMachine({.nodes = 2, .cores = 3}));
    const ContainerKey key = *node.Run("a", {.request = 1000, .type = "x"});
    const ContainerKey other = *node.Run("b", {.request = 3000, .type = "y"});
    ASSERT_EQ(node.CpusOf(key), "0");
    node.snapshot().At(other).placement.cpus = Cpus("1,3-4");
    std::string& reason = node.snapshot().At(other).placement.reason;
    reason = reason.substr(0, reason.rfind(' ')) + " 1,3-4";
    node.ChangeSection(section(more));
    node.Reconcile();
    EXPECT_EQ(node.CpusOf(key), "0");
    EXPECT_EQ(node.CpusOf(other), "1,3-4");
    EXPECT_EQ(node.Resize(key, 3000).ok(), more != "maxCPUs: 2, growWithin: numa");
    EXPECT_TRUE(!node.SetOf(key).Intersects(node.SetOf(other)));
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
