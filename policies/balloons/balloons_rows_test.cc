// SPDX-License-Identifier: Apache-2.0
// The acceptance rows of placement: what nri-plugins' balloons do, named by its end-to-end tests.
#include <algorithm>
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

constexpr std::string_view kRefused = "no suitable balloon instance available";

// Disjoint.
bool Apart(const CpuSet& a, const CpuSet& b) {
  return !a.Intersects(b);
}

TEST(BalloonsRowsTest, Test01FixedAndGrowingTypes) {
  BalloonsNode node(R"(
availableResources: {cpu: "cpuset:1-15"}
reservedResources: {cpu: "1"}
balloonTypes:
- {name: two-cpu, minCPUs: 2, maxCPUs: 2, preferNewBalloons: true}
- {name: three-cpu, minCPUs: 3, allocatorPriority: normal, namespaces: [three], preferSpreadingPods: true}
- {name: four-cpu, minCPUs: 4, maxCPUs: 8, minBalloons: 1, allocatorPriority: low}
- {name: five-cpu, maxCPUs: 5, allocatorPriority: none, preferNewBalloons: true, preferSpreadingPods: true}
)");
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
  node.Remove(fast0);
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
  BalloonsNode node(R"(
reservedResources: {cpu: "cpuset:0-2"}
reservedPoolNamespaces: ["monitor-*", "*-log*"]
PrivilegedNamespaces: ["*"]
balloonTypes:
- {name: reserved, minCPUs: 1, namespaces: [my-exact-name]}
- {name: default, minCPUs: 1}
- {name: full-core, minCPUs: 2, maxCPUs: 2, minBalloons: 2}
)");
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
}

TEST(BalloonsRowsTest, Test04GroupBy) {
  BalloonsNode node(R"(
reservedResources: {cpu: "1"}
balloonTypes:
- name: grouped
  minCPUs: 2
  preferNewBalloons: true
  groupBy: "${pod/namespace}-${pod/labels/balloon-instance}"
  matchExpressions: [{key: pod/labels/balloon-instance, operator: Exists}]
- {name: default, groupBy: "ns=$pod/namespace", preferNewBalloons: true}
)");
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
  BalloonsNode node(R"(
reservedResources: {cpu: "1"}
allocatorTopologyBalancing: true
preferSpreadOnPhysicalCores: true
balloonTypes:
- {name: policydefaults, minCPUs: 2, minBalloons: 1}
- {name: topo1cores0, minCPUs: 2, minBalloons: 1, preferSpreadOnPhysicalCores: false}
- {name: device-node2, preferNewBalloons: true, preferCloseToDevices: [/sys/devices/system/node/node2]}
)");
  const auto cores = [&](const CpuSet& cpus) {
    return static_cast<int>(std::ranges::count_if(
        node.machine().cores(), [&](const CpuSet& core) { return core.Intersects(cpus); }));
  };
  const CpuSet defaults = node.SetOf(*node.Run("a", {.request = 100, .type = "policydefaults"}));
  EXPECT_EQ(cores(defaults), 2);
  EXPECT_TRUE(Apart(defaults, Cpus("8-11")));
  EXPECT_EQ(cores(node.SetOf(*node.Run("b", {.request = 100, .type = "topo1cores0"}))), 1);
  const CpuSet near = node.SetOf(*node.Run("c", {.request = 3000, .type = "device-node2"}));
  EXPECT_EQ(cores(near), 2);
  EXPECT_TRUE(near.IsSubsetOf(Cpus("8-11")));
  const CpuSet next = node.SetOf(*node.Run("d", {.request = 2000, .type = "device-node2"}));
  EXPECT_EQ(cores(next), 2);
  EXPECT_TRUE(Apart(next, Cpus("8-11")));
}

TEST(BalloonsRowsTest, Test11ExpressionsAndPreservedContainers) {
  BalloonsNode node(R"(
reservedResources: {cpu: "1"}
preserve: {matchExpressions: [{key: name, operator: In, values: [keep0, keep1]}]}
balloonTypes:
- name: precious
  minCPUs: 2
  matchExpressions:
  - {key: pod/labels/app.kubernetes.io/component, operator: Equals, values: [precious]}
)");
  const ContainerKey precious = node.Add("p", {.request = 100});
  node.snapshot().PodOf(precious).labels.Set("app.kubernetes.io/component", "precious");
  EXPECT_EQ(node.SetOf(*node.Place(precious)).size(), 2);
  EXPECT_EQ(node.SetOf(*node.Run("d", {.request = 100})).size(), 1);
  EXPECT_FALSE(node.PlacementOf(*node.Run("keep0", {})).cpus.has_value());
  EXPECT_TRUE(node.PlacementOf(*node.Run("other", {})).cpus.has_value());
}

TEST(BalloonsRowsTest, Test13SharedIdleCpus) {
  BalloonsNode node(R"(
reservedResources: {cpu: "1"}
balloonTypes:
- {name: b, maxCPUs: 4, preferNewBalloons: true, allocatorTopologyBalancing: true, shareIdleCPUsInSame: numa}
- {name: one, maxCPUs: 1, preferNewBalloons: true, preferSpreadingPods: true, shareIdleCPUsInSame: numa}
)");
  CpuSet nodes;
  for (const char* const name : {"a", "b", "c"}) {
    const CpuSet cpus = node.SetOf(*node.Run(name, {.request = 1500, .type = "b"}));
    EXPECT_GE(cpus.size(), 3);
    EXPECT_EQ(node.machine().NodesOf(cpus).size(), 1);
    nodes |= cpus;
  }
  EXPECT_EQ(node.machine().NodesOf(nodes).size(), 3);
}

TEST(BalloonsRowsTest, Test13TwoBalloonsShareTheIdleCpuBetweenThem) {
  BalloonsNode node(R"(
availableResources: {cpu: "cpuset:4-7"}
reservedResources: {cpu: "1"}
balloonTypes:
- {name: one, maxCPUs: 1, preferNewBalloons: true, shareIdleCPUsInSame: numa}
)");
  const ContainerKey a = *node.Run("a", {.request = 500, .type = "one"});
  const ContainerKey b = *node.Run("b", {.request = 500, .type = "one"});
  EXPECT_EQ(node.SetOf(a).size(), 2);
  EXPECT_EQ(node.SetOf(b).size(), 2);
  EXPECT_EQ((node.SetOf(a) | node.SetOf(b)).size(), 3);
  ASSERT_TRUE(node.Run("k", {.namespace_name = "kube-system", .request = 1500}).ok());
  EXPECT_EQ(node.SetOf(a).size(), 1);
  EXPECT_EQ(node.SetOf(b).size(), 1);
}

TEST(BalloonsRowsTest, Test15LoadsOfCoresStayApart) {
  BalloonsNode node(R"(
loadClasses: [{name: avx, level: core, overloadsLevelInBalloon: true}]
balloonTypes:
- {name: avx, minCPUs: 2, maxCPUs: 4, minBalloons: 2, loads: [avx], preferNewBalloons: true}
)");
  const auto cores = [&](const CpuSet& cpus) { return node.machine().WithSiblings(cpus); };
  const ContainerKey a = *node.Run("a", {.request = 2000, .type = "avx"});
  EXPECT_EQ(cores(node.SetOf(a)).size(), 4) << "two cores for two CPUs";
  const ContainerKey b = *node.Run("b", {.request = 2000, .type = "avx"});
  EXPECT_TRUE(Apart(cores(node.SetOf(a)), cores(node.SetOf(b))));
  ASSERT_TRUE(node.Resize(a, 4000).ok());
  EXPECT_EQ(cores(node.SetOf(a)).size(), 8);
  EXPECT_TRUE(Apart(cores(node.SetOf(a)), cores(node.SetOf(b))));
}

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
  BalloonsNode node(R"(
availableResources: {cpu: "exclude-cpuset:0-1,4-5,8-9,12-13"}
reservedResources: {cpu: "exclude-cpuset:4-15"}
reservedPoolNamespaces: [mine]
)");
  EXPECT_TRUE(
      node.SetOf(*node.Run("k", {.namespace_name = "kube-system"})).IsSubsetOf(Cpus("2-3")));
  EXPECT_TRUE(node.SetOf(*node.Run("m", {.namespace_name = "mine"})).IsSubsetOf(Cpus("2-3")));
}

// Two packages of four CPUs: nodes 0 and 1 are DRAM, 2 and 3 HBM, 4 and 5 PMEM.
Machine Hbm() {
  Machine::Parts parts;
  std::vector<Cpu> cpus;
  for (int id = 0; id < 8; ++id)
    cpus.push_back(
        {.id = id, .core = id, .die = id / 4, .numa = id / 4, .package = id / 4, .online = true});
  parts = test::PartsOf(std::move(cpus));
  const int64_t gib = int64_t{1} << 30;
  for (NumaNode& node : parts.nodes)
    node.memory = Bytes{2 * gib};
  for (int id = 2; id < 6; ++id) {
    NumaNode node;
    node.id = id;
    node.memory = Bytes{(id < 4 ? 1 : 4) * gib};
    node.type = id < 4 ? MemoryType::kHbm : MemoryType::kPmem;
    parts.nodes.push_back(node);
  }
  for (NumaNode& node : parts.nodes) {
    node.distances.clear();
    for (int to = 0; to < 6; ++to)
      node.distances.push_back(to == node.id ? 10 : (to % 2 == node.id % 2 ? 17 : 28));
  }
  return test::MakeMachine(std::move(parts));
}

TEST(BalloonsRowsTest, Hbm01MemoryTypes) {
  BalloonsNode node(R"(
balloonTypes:
- {name: plain, preferNewBalloons: true, preferCloseToDevices: [/sys/devices/system/node/node0]}
- {name: fast, memoryTypes: [HBM, PMEM], preferCloseToDevices: [/sys/devices/system/node/node1]}
- {name: unpinned, pinMemory: false}
)",
                    Hbm());
  const auto mems = [&](std::string_view name, std::string_view type, std::string_view annotation) {
    const ContainerKey key = node.Add(name, {.request = 100, .type = type});
    if (!annotation.empty()) node.Annotate(key, "memory-type", annotation);
    EXPECT_TRUE(node.Place(key).ok());
    const std::optional<NodeSet>& set = node.PlacementOf(key).mems;
    return set ? set->ToString() : "all";
  };
  EXPECT_EQ(mems("a", "plain", ""), "0");
  EXPECT_EQ(mems("b", "plain", "hbm"), "2");
  EXPECT_EQ(mems("c", "plain", "pmem"), "4");
  EXPECT_EQ(mems("d", "plain", "dram,hbm"), "0,2");
  EXPECT_EQ(mems("e", "fast", ""), "3,5");
  EXPECT_EQ(mems("f", "unpinned", ""), "all");
}

TEST(BalloonsRowsTest, Hbm04FullSocketsShareTheRest) {
  BalloonsNode node(R"(
reservedResources: {cpu: "cpuset:3"}
allocatorTopologyBalancing: true
balloonTypes:
- {name: fullsocket, maxCPUs: 4, minCPUs: 1, minBalloons: 2, maxBalloons: 2, shareIdleCPUsInSame: package}
)",
                    Hbm());
  const ContainerKey a = *node.Run("a", {.request = 750, .type = "fullsocket"});
  EXPECT_EQ(node.CpusOf(a), "4-7");
  EXPECT_EQ(Cpus(node.CpusOfBalloon("fullsocket[0]")).size(), 1) << "the others are idle";
  EXPECT_TRUE(Cpus(node.CpusOfBalloon("fullsocket[1]")).IsSubsetOf(Cpus("0-2")));
  EXPECT_EQ(node.CpusOfBalloon("reserved[0]"), "3");
}

}  // namespace
}  // namespace resmgr
