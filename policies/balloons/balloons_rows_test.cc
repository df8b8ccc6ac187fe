// SPDX-License-Identifier: Apache-2.0
// The acceptance rows of placement: the behaviour of nri-plugins' balloons, named by its end-to-end
// tests.
#include <algorithm>
#include <string>
#include <string_view>
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

constexpr std::string_view kRefused = "no suitable balloon instance available";

TEST(BalloonsRowsTest, Test01FixedAndGrowingTypes) {
  BalloonsNode node(test::kTest01);
  const ContainerKey system = *node.Run("s0", {.namespace_name = "kube-system"});
  const ContainerKey other = *node.Run("s1", {.namespace_name = "kube-system"});
  EXPECT_EQ(node.SetOf(system), node.SetOf(other));
  EXPECT_EQ(node.SetOf(system).size(), 1);
  const ContainerKey two = *node.Run("two", {.request = 100, .type = "two-cpu"});
  const ContainerKey two_b = *node.CreateIn(two, "two-b", 100);
  EXPECT_EQ(node.SetOf(two), node.SetOf(two_b));
  EXPECT_EQ(node.SetOf(two).size(), 2);
  const ContainerKey next = *node.Run("next", {.request = 100, .type = "two-cpu"});
  EXPECT_TRUE(Apart(node.SetOf(two), node.SetOf(next)));
  const ContainerKey three = *node.Run("three", {.namespace_name = "three", .request = 1500});
  const ContainerKey three_b = *node.CreateIn(three, "three-b", 1500);
  EXPECT_EQ(node.SetOf(three).size(), 3);
  EXPECT_EQ(node.SetOf(three), node.SetOf(three_b));
}

TEST(BalloonsRowsTest, Test01HiddenHyperthreads) {
  BalloonsNode node(R"(
availableResources: {cpu: "cpuset:1-15"}
reservedResources: {cpu: "1"}
balloonTypes:
- {name: four-cpu, minCPUs: 4, maxCPUs: 8, minBalloons: 1, allocatorPriority: low}
)");
  const ContainerKey c0 = *node.Run("c0", {.request = 3000, .type = "four-cpu"});
  const ContainerKey c1 = node.Add("c1", {.request = 3000, .type = "four-cpu"});
  node.Annotate(c1, "hide-hyperthreads", "true");
  ASSERT_TRUE(node.Place(c1).ok());
  const ContainerKey c2 = *node.Run("c2", {.request = 3000, .type = "four-cpu"});
  EXPECT_EQ(node.SetOf(c0).size(), 6);
  EXPECT_EQ(node.SetOf(c1).size(), 3);
  EXPECT_TRUE(node.SetOf(c1).IsSubsetOf(node.SetOf(c0)));
  EXPECT_EQ(node.SetOf(c2).size(), 4);
  EXPECT_TRUE(Apart(node.SetOf(c2), node.SetOf(c0)));
}

TEST(BalloonsRowsTest, Test01NewBalloonsUntilCpusAreGone) {
  BalloonsNode node(R"(
availableResources: {cpu: "cpuset:1-11"}
reservedResources: {cpu: "1"}
balloonTypes:
- {name: five-cpu, maxCPUs: 5, allocatorPriority: none, preferNewBalloons: true, preferSpreadingPods: true}
)");
  CpuSet pairs;
  for (const char* const name : {"a", "b", "c"}) {
    const CpuSet cpus = node.SetOf(*node.Run(name, {.request = 1250, .type = "five-cpu"}));
    EXPECT_EQ(cpus.size(), 2);
    EXPECT_TRUE(Apart(cpus, pairs));
    pairs |= cpus;
  }
  CpuSet singles;
  for (const char* const name : {"d", "e", "f", "g"}) {
    const CpuSet cpus = node.SetOf(*node.Run(name, {.type = "five-cpu"}));
    EXPECT_EQ(cpus.size(), 1);
    EXPECT_TRUE(Apart(cpus, pairs | singles));
    singles |= cpus;
  }
  for (const char* const name : {"h", "i", "j", "k"}) {
    const CpuSet cpus = node.SetOf(*node.Run(name, {.type = "five-cpu"}));
    EXPECT_EQ(cpus.size(), 1);
    EXPECT_TRUE(cpus.IsSubsetOf(singles)) << cpus.ToString();
  }
}

TEST(BalloonsRowsTest, Test02FlexBalloonsFollowRequests) {
  BalloonsNode node(R"(
reservedResources: {cpu: "1"}
balloonTypes:
- {name: full-core, minCPUs: 2, maxCPUs: 2, hideHyperthreads: true, preferNewBalloons: true}
- {name: fast-dualcore, minCPUs: 4, maxCPUs: 4, preferNewBalloons: true}
- {name: flex}
)");
  const ContainerKey hidden = *node.Run("hidden", {.request = 100, .type = "full-core"});
  const Pod pod = [&] {
    Pod its = node.snapshot().PodOf(hidden);
    its.annotations.Set("hide-hyperthreads.resource-policy.nri.io/container.open", "false");
    return its;
  }();
  const ContainerKey open = *node.CreateIn(pod, "open", 100);
  EXPECT_EQ(node.SetOf(hidden).size(), 1);
  EXPECT_EQ(node.SetOf(open).size(), 2);
  EXPECT_TRUE(node.SetOf(hidden).IsSubsetOf(node.SetOf(open)));
  node.Remove(hidden);
  node.Remove(open);
  const ContainerKey fast0 = *node.Run("fast0", {.request = 200, .type = "fast-dualcore"});
  const ContainerKey fast1 = *node.Run("fast1", {.request = 500, .type = "fast-dualcore"});
  EXPECT_EQ(node.PoolOf(fast0), "fast-dualcore[0]");
  EXPECT_EQ(node.PoolOf(fast1), "fast-dualcore[1]");
  EXPECT_EQ(node.SetOf(fast0).size(), 4);
  const std::string left = node.CpusOf(fast1);
  node.Remove(fast0);
  EXPECT_EQ(node.CpusOf(fast1), left);
  const ContainerKey flex = *node.Run("flex", {.request = 3500, .type = "flex"});
  EXPECT_EQ(node.SetOf(flex).size(), 4);
  const ContainerKey more = *node.Run("more", {.request = 1200, .type = "flex"});
  EXPECT_EQ(node.SetOf(flex).size(), 5);
  EXPECT_EQ(node.SetOf(more), node.SetOf(flex));
  node.Remove(flex);
  EXPECT_EQ(node.SetOf(more).size(), 2);
  node.Remove(more);
  EXPECT_EQ(node.CpusOfBalloon("flex[0]"), "none");
  EXPECT_EQ(node.PoolOf(*node.Run("again", {.request = 4000, .type = "fast-dualcore"})),
            "fast-dualcore[0]");
}

TEST(BalloonsRowsTest, Test03ReservedCpusAndNamespaces) {
  BalloonsNode node(test::kTest03);
  const auto set = [&](std::string_view name, const test::BalloonPod& pod) {
    return node.SetOf(*node.Run(name, pod));
  };
  EXPECT_TRUE(set("k", {.namespace_name = "kube-system", .request = 100}).IsSubsetOf(Cpus("0-2")));
  const ContainerKey monitor = *node.Run("m", {.namespace_name = "monitor-x", .request = 1000});
  const ContainerKey log = *node.Run("l", {.namespace_name = "my-logger", .request = 1000});
  EXPECT_EQ(node.SetOf(monitor), node.SetOf(log));
  const CpuSet core =
      set("core", {.namespace_name = "kube-system", .request = 100, .type = "full-core"});
  EXPECT_EQ(core.size(), 2);
  EXPECT_TRUE(Apart(core, Cpus("0-2")));
  const CpuSet fallback = set("d", {.namespace_name = "default", .request = 2500});
  EXPECT_EQ(fallback.size(), 3);
  EXPECT_TRUE(Apart(fallback, core | Cpus("0-2")));
  const CpuSet grown = set("r", {.namespace_name = "default", .request = 2500, .type = "reserved"});
  EXPECT_TRUE(Cpus("0-2").IsSubsetOf(grown));
  EXPECT_GT(grown.size(), 4);
  std::vector<ContainerKey> all;
  node.snapshot().ForEachContainer(
      [&](const Pod&, const Container& container) { all.push_back(container.key); });
  for (const ContainerKey key : all)
    node.Remove(key);
  EXPECT_EQ(set("d2", {.namespace_name = "default", .request = 999}).size(), 1);
  EXPECT_EQ(set("k2", {.namespace_name = "kube-system", .request = 100}), Cpus("0-2"))
      << "theirs owns fewer than all reserved CPUs";
}

TEST(BalloonsRowsTest, Test04GroupBy) {
  BalloonsNode node(test::kTest04);
  const auto run = [&](std::string_view name, std::string_view ns, const std::string& group) {
    const ContainerKey key = node.Add(name, {.namespace_name = ns, .request = 500});
    if (!group.empty()) node.snapshot().PodOf(key).labels.Set("balloon-instance", group);
    return node.SetOf(*node.Place(key));
  };
  const CpuSet pod0 = run("pod0", "default", "g1");
  const CpuSet pod1 = run("pod1", "default", "g2");
  const CpuSet pod2 = run("pod2", "default", "g1");
  const CpuSet pod3 = run("pod3", "other", "g1");
  EXPECT_EQ(pod0, pod2);
  EXPECT_TRUE(Apart(pod0, pod1) && Apart(pod0, pod3) && Apart(pod1, pod3));
  EXPECT_EQ(run("plain0", "a", ""), run("plain1", "a", ""));
  EXPECT_TRUE(Apart(run("plain2", "b", ""), run("plain3", "a", "")));
}

TEST(BalloonsRowsTest, Test05OneBalloonPerNamespace) {
  BalloonsNode node(R"(
reservedResources: {cpu: "1"}
PrivilegedNamespaces: ["*"]
balloonTypes:
- {name: ns, namespaces: ["*"], minCPUs: 2, maxCPUs: 4, preferPerNamespaceBalloon: true}
)");
  const ContainerKey a = *node.Run("a", {.namespace_name = "default", .request = 1000});
  const ContainerKey b = *node.Run("b", {.namespace_name = "default", .request = 900});
  EXPECT_EQ(node.SetOf(a), node.SetOf(b));
  EXPECT_EQ(node.SetOf(a).size(), 2);
  const ContainerKey other = *node.Run("other", {.namespace_name = "other", .request = 100});
  EXPECT_TRUE(Apart(node.SetOf(other), node.SetOf(a)));
  ASSERT_TRUE(node.Run("grow", {.namespace_name = "default", .request = 2000}).ok());
  EXPECT_EQ(node.SetOf(a).size(), 4);
  const ContainerKey next = *node.Run("next", {.namespace_name = "default", .request = 200});
  EXPECT_TRUE(Apart(node.SetOf(next), node.SetOf(a)));
  EXPECT_EQ(node.SetOf(next).size(), 2);
  // No new balloon is possible after three more namespaces: the containers share one.
  for (const char* const name : {"c", "d", "e"})
    ASSERT_TRUE(node.Run(name, {.namespace_name = name, .request = 1500}).ok());
  const ContainerKey f = *node.Run("f", {.namespace_name = "f", .request = 100});
  const ContainerKey g = *node.CreateIn(f, "g", 100);
  EXPECT_EQ(node.SetOf(f), node.SetOf(g));
  EXPECT_NE(node.SetOf(f).size(), 0);
  const ContainerKey free = node.Add("free", {.namespace_name = "default"});
  node.Annotate(free, "cpu.preserve", "true");
  ASSERT_TRUE(node.Place(free).ok());
  EXPECT_FALSE(node.PlacementOf(free).cpus.has_value()) << "all 16 CPUs";
}

TEST(BalloonsRowsTest, Test06TypesThatGoAndComeBack) {
  constexpr std::string_view kWith =
      "{reservedResources: {cpu: \"1\"}, balloonTypes: [{name: x, namespaces: [x], minCPUs: 2}]}";
  BalloonsNode node(kWith);
  const ContainerKey a = *node.Run("a", {.namespace_name = "x", .request = 100});
  const std::string before = node.CpusOf(a);
  EXPECT_EQ(node.PoolOf(a), "x[0]");
  node.ChangeSection("reservedResources: {cpu: \"1\"}");
  node.Reconcile();
  EXPECT_EQ(node.PoolOf(a), "default[0]");
  node.ChangeSection(kWith);
  node.Reconcile();
  EXPECT_EQ(node.PoolOf(a), "x[0]");
  EXPECT_EQ(node.SetOf(a).size(), 2);
  node.ChangeSection(
      "{reservedResources: {cpu: \"1\"}, balloonTypes: [{name: x, namespaces: [x], minCPUs: 2, "
      "cpuClass: turbo}]}");
  EXPECT_TRUE(node.Reconcile().empty()) << "only the class is another one";
}

TEST(BalloonsRowsTest, Test07Limits) {
  BalloonsNode node(R"(
reservedResources: {cpu: "1"}
balloonTypes:
- {name: singleton, minCPUs: 2, maxCPUs: 2, minBalloons: 1, maxBalloons: 1}
- {name: dynamictwo, maxCPUs: 1, maxBalloons: 2, preferNewBalloons: true}
)");
  const ContainerKey a = *node.Run("a", {.request = 1500, .type = "singleton"});
  const ContainerKey b = *node.Run("b", {.request = 500, .type = "singleton"});
  EXPECT_EQ(node.SetOf(a), node.SetOf(b));
  const StatusOr<ContainerKey> full = node.Run("c", {.request = 100, .type = "singleton"});
  EXPECT_EQ(full.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(full.status())), HasSubstr(kRefused));
  const ContainerKey d = *node.Run("d", {.request = 800, .type = "dynamictwo"});
  const ContainerKey e = *node.Run("e", {.request = 600, .type = "dynamictwo"});
  EXPECT_TRUE(Apart(node.SetOf(d), node.SetOf(e)));
  EXPECT_EQ(node.SetOf(*node.Run("f", {.request = 300, .type = "dynamictwo"})), node.SetOf(e));
  EXPECT_THAT(node.CpusAt("g", {.request = 300, .type = "dynamictwo"}), HasSubstr(kRefused));
  EXPECT_THAT(std::string(Message(
                  test::CreateError(BalloonsPolicyFactory(), test::N4C16(), "0",
                                    "balloonTypes: [{name: x, minBalloons: 2, maxBalloons: 1}]"))),
              HasSubstr("is 2, more than maxBalloons 1"));
}

TEST(BalloonsRowsTest, Test08OneTypeForAll) {
  BalloonsNode node(R"(
reservedResources: {cpu: "1"}
balloonTypes: [{name: all, namespaces: ["*"], maxCPUs: 4}]
)");
  const ContainerKey a = *node.Run("a", {});
  EXPECT_EQ(node.SetOf(a).size(), 1);
  std::vector<ContainerKey> keys;
  for (int i = 1; i <= 4; ++i) {
    keys.push_back(*node.Run("r" + std::to_string(i), {.request = 1000}));
    EXPECT_EQ(node.SetOf(a).size(), i);
    EXPECT_EQ(node.SetOf(keys.back()), node.SetOf(a));
  }
  EXPECT_EQ(node.SetOf(*node.Run("b", {})).size(), 4);
  const ContainerKey next = *node.Run("next", {.request = 1000});
  EXPECT_EQ(node.SetOf(next).size(), 1);
  EXPECT_TRUE(Apart(node.SetOf(next), node.SetOf(a)));
  for (int i = 0; i < 3; ++i)
    node.Remove(keys[static_cast<size_t>(i)]);
  EXPECT_EQ(node.SetOf(a).size(), 1);
  node.Remove(keys[3]);
  EXPECT_EQ(node.SetOf(a).size(), 1);
}

TEST(BalloonsRowsTest, Test09PreCreatedBalloonsAreUsedFirst) {
  BalloonsNode node(R"(
reservedResources: {cpu: "1"}
balloonTypes:
- {name: isolated-pods, maxCPUs: 2, minBalloons: 2, preferNewBalloons: true}
- {name: isolated-ctrs, minCPUs: 1, maxCPUs: 1, preferNewBalloons: true, preferSpreadingPods: true}
)");
  for (const std::string index : {"0", "1", "2"}) {
    EXPECT_EQ(node.PoolOf(*node.Run("p" + index, {.request = 500, .type = "isolated-pods"})),
              "isolated-pods[" + index + "]");
  }
  const ContainerKey first = *node.Run("c", {.request = 100, .type = "isolated-ctrs"});
  CpuSet all = node.SetOf(first);
  for (const char* const name : {"d", "e", "f"}) {
    const CpuSet cpus = node.SetOf(*node.CreateIn(first, name, 100));
    EXPECT_EQ(cpus.size(), 1);
    EXPECT_TRUE(Apart(cpus, all));
    all |= cpus;
  }
}

TEST(BalloonsRowsTest, Test10BalancingSpreadingAndDevices) {
  BalloonsNode node(test::kTest10);
  const auto cores = [&](const CpuSet& cpus) {
    return static_cast<int>(std::ranges::count_if(
        node.machine().cores(), [&](const CpuSet& core) { return core.Intersects(cpus); }));
  };
  const CpuSet defaults = node.SetOf(*node.Run("a", {.request = 100, .type = "policydefaults"}));
  EXPECT_EQ(cores(defaults), 2);
  EXPECT_TRUE(Apart(defaults, Cpus("8-11")));
  EXPECT_EQ(cores(node.SetOf(*node.Run("b", {.request = 100, .type = "topo1cores0"}))), 1);
  EXPECT_EQ(cores(node.SetOf(*node.Run("p", {.request = 100, .type = "topo0cores0"}))), 1);
  const ContainerKey grown = *node.Run("g", {.request = 1000, .type = "topo0cores1"});
  ASSERT_TRUE(node.CreateIn(grown, "g2", 1000).ok());
  EXPECT_EQ(cores(node.SetOf(grown)), 2);
  const CpuSet near = node.SetOf(*node.Run("c", {.request = 3000, .type = "device-node2"}));
  EXPECT_EQ(cores(near), 2);
  EXPECT_TRUE(near.IsSubsetOf(Cpus("8-11")));
  const CpuSet next = node.SetOf(*node.Run("d", {.request = 2000, .type = "device-node2"}));
  EXPECT_EQ(cores(next), 2);
  EXPECT_TRUE(Apart(next, Cpus("8-11")));
}

TEST(BalloonsRowsTest, Test11ExpressionsAndPreservedContainers) {
  BalloonsNode node(test::kTest11);
  const ContainerKey precious = node.Add("p", {.request = 100});
  node.snapshot().PodOf(precious).labels.Set("app.kubernetes.io/component", "precious");
  EXPECT_EQ(node.SetOf(*node.Place(precious)).size(), 2);
  EXPECT_EQ(node.SetOf(*node.Run("d", {.request = 100})).size(), 1);
  EXPECT_FALSE(node.PlacementOf(*node.Run("keep0", {})).cpus.has_value());
  EXPECT_TRUE(node.PlacementOf(*node.Run("other", {})).cpus.has_value());
}

TEST(BalloonsRowsTest, Test22IsolatedCpus) {
  BalloonsNode node("balloonTypes: [{name: iso, minCPUs: 1, minBalloons: 1, preferIsolCpus: true}]",
                    test::WithIsolated(test::N4C16(), "0-1"));
  EXPECT_TRUE(Apart(node.SetOf(*node.Run("d", {.request = 3000})), Cpus("0-1")));
  const ContainerKey a = *node.Run("a", {.request = 1000, .type = "iso"});
  const ContainerKey b = *node.Run("b", {.request = 1000, .type = "iso"});
  EXPECT_EQ(node.CpusOf(a), "0-1");
  EXPECT_EQ(node.CpusOf(b), "0-1");
}

TEST(BalloonsRowsTest, Test23AllButSomeCpus) {
  BalloonsNode node(test::kTest23);
  EXPECT_TRUE(
      node.SetOf(*node.Run("k", {.namespace_name = "kube-system"})).IsSubsetOf(Cpus("2-3")));
  EXPECT_TRUE(node.SetOf(*node.Run("m", {.namespace_name = "mine"})).IsSubsetOf(Cpus("2-3")));
}

// Rules that hold here and fail with nri-plugins: the rows 12c, in their order, and unknown keys.

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
  keys.reserve(24);
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
      AllOf(HasSubstr("balloonTypes[0].matchExpressions[0].operator: \"Exist\" is not one of"),
            HasSubstr("did you mean Exists?")));
}

TEST(BalloonsTheirFaultsTest, MistakesOfExpressionsNameTheirPlaceOnce) {
  const std::string error(Message(test::CreateError(
      BalloonsPolicyFactory(), test::N4C16(), "0",
      "balloonTypes:\n- name: x\n  matchExpressions:\n  - {key: name, operator: Foo}\n")));
  EXPECT_THAT(error, testing::MatchesRegex("[^:]*:4: policy.balloons.balloonTypes.0.*"));
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
