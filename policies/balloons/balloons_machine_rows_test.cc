// SPDX-License-Identifier: Apache-2.0
// Rows of machines with caches, devices, memory or CPU ids of their own, named as in
// balloons_rows_test.cc.
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/balloons/testing/balloons_node.h"

namespace resmgr {
namespace {

using test::Apart;
using test::BalloonsNode;
using test::Cpus;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// The machine of the rows, with so many CPUs to an L2 cache.
Machine WithL2(int cpus_of_one) {
  const Machine machine = test::N4C16();
  Machine::Parts parts = test::PartsOf(machine);
  for (Cpu& cpu : parts.cpus)
    cpu.l2 = cpu.id / cpus_of_one;
  return test::MakeMachine(std::move(parts));
}

TEST(BalloonsRowsTest, Test13IdleCpusOfTheSameL2Cache) {
  BalloonsNode node(R"(
reservedResources: {cpu: "1"}
balloonTypes:
- {name: b, maxCPUs: 4, preferNewBalloons: true, allocatorTopologyBalancing: true, shareIdleCPUsInSame: l2cache}
)",
                    WithL2(4));
  CpuSet nodes;
  for (const char* const name : {"a", "b", "c"}) {
    const CpuSet cpus = node.SetOf(*node.Run(name, {.request = 1500, .type = "b"}));
    EXPECT_EQ(cpus.size(), 4) << cpus.ToString();
    EXPECT_EQ(node.machine().NodesOf(cpus).size(), 1);
    EXPECT_TRUE(Apart(cpus, nodes));
    nodes |= cpus;
  }
  const CpuSet last = node.SetOf(*node.Run("d", {.request = 2000, .type = "b"}));
  EXPECT_EQ(last.size(), 3) << "two and an idle one: " << last.ToString();
  EXPECT_TRUE(Apart(last, nodes));
}

TEST(BalloonsRowsTest, Test13TwoBalloonsShareTheIdleCpuBetweenThem) {
  BalloonsNode node(R"(
reservedResources: {cpu: "1"}
balloonTypes: [{name: one, maxCPUs: 1, preferSpreadingPods: true, shareIdleCPUsInSame: l2cache}]
)",
                    WithL2(4));
  std::vector<ContainerKey> keys;
  CpuSet all;
  for (const char* const name : {"a", "b", "c", "d"}) {
    keys.push_back(*node.Run(name, {.request = 500, .type = "one"}));
    all |= node.SetOf(keys.back());
  }
  EXPECT_EQ(node.CpusOfBalloon("one[2]"), "none") << "two balloons in one L2 cache";
  for (const ContainerKey key : keys)
    EXPECT_EQ(node.SetOf(key).size(), 2) << "its own CPU and the idle one";
  CpuSet now;
  for (const ContainerKey key : keys)
    now |= node.SetOf(key);
  EXPECT_EQ(now.size(), 3);
  ASSERT_TRUE(node.Run("k", {.namespace_name = "kube-system", .request = 1500}).ok());
  for (const ContainerKey key : keys)
    EXPECT_EQ(node.SetOf(key).size(), 1);
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

TEST(BalloonsRowsTest, Test15LoadsOfL2CachesStayApart) {
  BalloonsNode node(R"(
loadClasses:
- {name: avx, level: core, overloadsLevelInBalloon: true}
- {name: membw, level: l2cache}
balloonTypes:
- {name: noload, maxCPUs: 1, preferNewBalloons: true}
- {name: l2load, loads: [membw], preferNewBalloons: true, preferSpreadingPods: true}
- {name: l2htload, loads: [membw, avx], preferNewBalloons: true, preferSpreadingPods: true}
)",
                    WithL2(4));
  const auto run = [&](std::string_view name, std::string_view type, int64_t request) {
    return node.SetOf(*node.Run(name, {.request = request, .type = type}));
  };
  const auto node_of = [&](const CpuSet& cpus) { return node.machine().NodesOf(cpus); };
  const CpuSet first = run("a", "l2load", 100);
  const CpuSet second = run("b", "l2load", 100);
  EXPECT_NE(node_of(first), node_of(second));
  const CpuSet& package = node.machine().packages()[0];
  EXPECT_TRUE((first | second).IsSubsetOf(package)) << "packed";
  EXPECT_TRUE(run("n", "noload", 100).IsSubsetOf(package)) << "no load, nothing to avoid";
  const CpuSet both = run("c", "l2htload", 100);
  EXPECT_TRUE(Apart(both, package)) << both.ToString();
  const CpuSet next = run("d", "l2htload", 100);
  EXPECT_TRUE(Apart(next, package)) << next.ToString();
  EXPECT_NE(node_of(next), node_of(both));
}

TEST(BalloonsRowsTest, Test15FourCpusWithALoadOfCores) {
  BalloonsNode node(R"(
loadClasses:
- {name: avx, level: core, overloadsLevelInBalloon: true}
- {name: membw, level: l2cache}
balloonTypes: [{name: l2htload, loads: [membw, avx], preferNewBalloons: true}]
)",
                    WithL2(4));
  const CpuSet four = node.SetOf(*node.Run("a", {.request = 4000, .type = "l2htload"}));
  EXPECT_EQ(four.size(), 4);
  EXPECT_EQ(node.machine().WithSiblings(four).size(), 8) << "four cores";
}

// Whatever their order in the list: first another cache for each CPU, then another core.
TEST(BalloonsRowsTest, Test15LoadsOfTwoLevelsInOneBalloon) {
  for (const std::string_view loads : {"[avx, membw]", "[membw, avx]"}) {
    BalloonsNode node(fmt::format(R"(
loadClasses:
- {{name: avx, level: core, overloadsLevelInBalloon: true}}
- {{name: membw, level: l2cache, overloadsLevelInBalloon: true}}
balloonTypes: [{{name: both, loads: {}}}]
)",
                                  loads),
                      WithL2(4));
    const ContainerKey key = *node.Run("a", {.request = 4000, .type = "both"});
    const std::vector<CpuSet>& caches = node.machine().l2_groups();
    EXPECT_EQ(AllOf(caches, node.SetOf(key)).size(), 16) << loads << ": " << node.CpusOf(key);
    ASSERT_TRUE(node.Resize(key, 6000).ok());
    EXPECT_EQ(node.machine().WithSiblings(node.SetOf(key)).size(), 12) << node.CpusOf(key);
  }
}

// The devices of a container, as the daemon finds them: /dev/NAME near these nodes.
void GiveDevice(BalloonsNode& node, ContainerKey key, std::string_view name, const NodeSet& nodes) {
  node.snapshot().At(key).hints.push_back(
      {.source = fmt::format("device /dev/{}", name), .cpus = {}, .nodes = nodes});
}

TEST(BalloonsRowsTest, Test24ContainersAreNearTheirDevices) {
  BalloonsNode node(R"(
reservedResources: {cpu: "1"}
balloonTypes:
- name: device
  preferNewBalloons: true
  preferSpreadingPods: true
  preferCloseToDevices: ["/dev/tpu*", "/dev/nic*"]
)");
  CpuSet all;
  for (const int id : {3, 1, 2}) {
    const ContainerKey key = node.Add(fmt::format("c{}", id), {.request = 2000, .type = "device"});
    GiveDevice(node, key, "nic0", id < 2 ? NodeSet{0, 1} : NodeSet{2, 3});
    GiveDevice(node, key, fmt::format("tpu{}", id), NodeSet{id});
    const CpuSet cpus = node.SetOf(*node.Place(key));
    EXPECT_EQ(node.machine().NodesOf(cpus), NodeSet{id}) << cpus.ToString();
    EXPECT_TRUE(Apart(cpus, all));
    all |= cpus;
  }
  // Three CPUs are not free near its TPU: its NIC counts still.
  const ContainerKey wide = node.Add("wide", {.request = 3000, .type = "device"});
  GiveDevice(node, wide, "nic0", NodeSet{0, 1});
  GiveDevice(node, wide, "tpu1", NodeSet{1});
  const CpuSet cpus = node.SetOf(*node.Place(wide));
  EXPECT_TRUE(cpus.IsSubsetOf(Cpus("0-7"))) << cpus.ToString();
  // A device that the type does not name has no effect.
  const ContainerKey other = node.Add("other", {.request = 1000, .type = "device"});
  GiveDevice(node, other, "fpga0", NodeSet{3});
  EXPECT_FALSE(node.PlacementOf(*node.Place(other)).reason.empty());
  EXPECT_TRUE(node.policy().WantsHints());
}

TEST(BalloonsRowsTest, Test30NoNumaInTheKernel) {
  const Machine machine = test::N4C16();
  Machine::Parts parts{.cpus = machine.cpus(), .nodes = {}, .allowed = machine.allowed()};
  for (Cpu& cpu : parts.cpus)
    cpu.numa = -1;
  BalloonsNode node(R"(
reservedResources: {cpu: "1"}
balloonTypes:
- {name: default, minCPUs: 5, maxCPUs: 5, preferNewBalloons: true}
- name: near
  minCPUs: 2
  maxCPUs: 2
  hideHyperthreads: true
  preferCloseToDevices: [/sys/devices/system/cpu/cpu7/cache/index2]
)",
                    test::MakeMachine(std::move(parts)));
  const ContainerKey near = *node.Run("near", {.request = 1000, .type = "near"});
  EXPECT_EQ(node.SetOf(near).size(), 1);
  EXPECT_TRUE(node.SetOf(near).IsSubsetOf(Cpus("6-7"))) << node.CpusOf(near);
  EXPECT_FALSE(node.PlacementOf(near).mems.has_value()) << "there are no nodes";
  const CpuSet a = node.SetOf(*node.Run("a", {.request = 100}));
  const CpuSet b = node.SetOf(*node.Run("b", {.request = 100}));
  EXPECT_EQ(a.size(), 5);
  EXPECT_EQ(b.size(), 5);
  EXPECT_TRUE(Apart(a, b));
  EXPECT_TRUE(Apart(a | b, node.SetOf(near)));
  node.RestartPolicy();
  EXPECT_TRUE(node.Reconcile().empty());
}

// Eight packages of one node, with these CPUs online: those of package P are 512*P to 512*P + 511,
// half of them of each of two dies.
Machine WithGaps(std::initializer_list<int> ids) {
  std::vector<Cpu> cpus;
  for (const int id : ids) {
    cpus.push_back({.id = id,
                    .core = id,
                    .die = id / 256,
                    .numa = id / 512,
                    .package = id / 512,
                    .online = true});
  }
  return test::MakeMachine(test::PartsOf(std::move(cpus)));
}

constexpr std::string_view kFarIds = R"(
availableResources: {cpu: "cpuset:0-4095"}
reservedResources: {cpu: "cpuset:1"}
balloonTypes:
- {name: near0, shareIdleCPUsInSame: numa, preferCloseToDevices: [/sys/devices/system/node/node0]}
- {name: near2, preferCloseToDevices: [/sys/devices/system/node/node2]}
- {name: near7, preferCloseToDevices: [/sys/devices/system/node/node7]}
)";

TEST(BalloonsRowsTest, S8c4kIdsWithGaps) {
  BalloonsNode node(kFarIds, WithGaps({0, 1, 2, 511, 1535, 4095}));
  const ContainerKey a = *node.Run("a", {.request = 1000, .type = "near0"});
  EXPECT_EQ(node.CpusOfBalloon("near0[0]"), "511") << "the fullest part has but this one";
  EXPECT_EQ(node.CpusOf(a), "0,2,511");
  EXPECT_EQ(node.CpusAt("b", {.request = 1000, .type = "near2"}), "1535");
  EXPECT_EQ(node.CpusAt("c", {.request = 1000, .type = "near7"}), "4095");
  EXPECT_EQ(node.CpusOfBalloon("reserved[0]"), "1");
  node.RestartPolicy();
  EXPECT_TRUE(node.Reconcile().empty());
}

TEST(BalloonsRowsTest, S8c4kCpusThatAreHotPlugged) {
  BalloonsNode before(kFarIds, WithGaps({0, 1, 2, 511}));
  const ContainerKey a = *before.Run("a", {.request = 1000, .type = "near0"});
  const ContainerKey b = *before.Run("b", {.request = 1000, .type = "near7"});
  ASSERT_TRUE(before.SetOf(b).IsSubsetOf(Cpus("0,2"))) << "its node has no CPU yet";
  BalloonsNode node(kFarIds, WithGaps({0, 1, 2, 511, 1535, 4095}));
  for (const ContainerKey key : {a, b}) {
    const Container& held = before.snapshot().At(key);
    const ContainerKey same =
        node.Add(held.name, {.request = 1000, .type = key == a ? "near0" : "near7"});
    node.snapshot().At(same).placement = held.placement;
  }
  EXPECT_TRUE(node.Reconcile().empty()) << "no container moves when CPUs come";
  EXPECT_EQ(node.CpusAt("c", {.request = 1000, .type = "near7"}), "0,4095")
      << "the balloon grows by the CPU of its node";
  EXPECT_EQ(node.CpusAt("d", {.request = 1000, .type = "near2"}), "1535");
}

// Two packages of four CPUs: nodes 0 and 1 are DRAM, 2 and 3 HBM, 4 and 5 PMEM.
Machine Hbm() {
  Machine::Parts parts;
  std::vector<Cpu> cpus;
  cpus.reserve(8);
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
    node.near = id % 2 == 0 ? Cpus("0-3") : Cpus("4-7");
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

// Another node's nearer memory does not replace that of the first node.
TEST(BalloonsRowsTest, Hbm01AResizeKeepsTheMemory) {
  const Machine hbm = Hbm();
  Machine::Parts parts = test::PartsOf(hbm);
  parts.nodes[1].distances[3] = 12;
  BalloonsNode node("balloonTypes: [{name: fast, memoryTypes: [HBM]}]",
                    test::MakeMachine(std::move(parts)));
  const ContainerKey key = *node.Run("a", {.request = 4000, .type = "fast"});
  ASSERT_EQ(node.CpusOf(key), "0-3");
  EXPECT_EQ(node.PlacementOf(key).mems, NodeSet{2});
  ASSERT_TRUE(node.Resize(key, 5000).ok());
  EXPECT_EQ(node.PlacementOf(key).mems, (NodeSet{2, 3}));
  ASSERT_TRUE(node.Resize(key, 4000).ok());
  EXPECT_EQ(node.PlacementOf(key).mems, NodeSet{2});
}

// A type that is mistyped gives the container the memory of its balloon's type, and is told.
TEST(BalloonsRowsTest, Hbm01AMemoryTypeThatIsNoneIsTold) {
  BalloonsNode node("balloonTypes: [{name: plain, memoryTypes: [PMEM]}]", Hbm());
  const auto place = [&node](std::string_view name, std::string_view annotation) {
    const ContainerKey key = node.Add(name, {.request = 100, .type = "plain"});
    node.Annotate(key, "memory-type", annotation);
    EXPECT_TRUE(node.Place(key).ok());
    return node.PlacementOf(key);
  };
  EXPECT_THAT(place("known", "dram").reason, Not(HasSubstr("ignored")));
  const Placement without = place("without", "");
  EXPECT_THAT(without.reason, Not(HasSubstr("ignored")));
  for (const char* const annotation : {"hbn", "mixed", "[hbm]", "{", "dram,"}) {
    const Placement placement = place(annotation, annotation);
    EXPECT_EQ(placement.mems, without.mems) << annotation;
    EXPECT_THAT(placement.reason, HasSubstr("; annotation memory-type ignored: no list of dram, "
                                            "pmem, hbm"))
        << annotation;
  }
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
  const ContainerKey b = *node.Run("b", {.request = 100, .type = "fullsocket"});
  EXPECT_EQ(node.PoolOf(b), "fullsocket[1]");
  EXPECT_EQ(node.CpusOf(b), "0-2");
}

TEST(BalloonsRowsTest, Hbm04PreservedContainers) {
  BalloonsNode node(R"(
reservedResources: {cpu: "cpuset:3"}
PrivilegedNamespaces: ["*"]
allocatorTopologyBalancing: true
balloonTypes:
- {name: fullsocket, maxCPUs: 4, minCPUs: 1, minBalloons: 2, maxBalloons: 2, shareIdleCPUsInSame: package}
)",
                    Hbm());
  const ContainerKey plain = *node.Run("plain", {.request = 750, .type = "fullsocket"});
  EXPECT_EQ(node.CpusOf(plain), "4-7");
  EXPECT_EQ(node.PlacementOf(plain).mems, NodeSet{1});
  Pod& pod = node.snapshot().PodOf(plain);
  pod.annotations.Set("cpu.preserve.resource-policy.nri.io/container.cpu", "true");
  pod.annotations.Set("memory.preserve.resource-policy.nri.io/container.memory", "true");
  const ContainerKey memory = *node.CreateIn(pod, "memory", 750);
  EXPECT_EQ(node.CpusOf(memory), "4-7");
  EXPECT_FALSE(node.PlacementOf(memory).mems.has_value());
  const ContainerKey cpu = *node.CreateIn(pod, "cpu", 750);
  EXPECT_FALSE(node.PlacementOf(cpu).cpus.has_value());
  EXPECT_EQ(node.PoolOf(cpu), "") << "in no balloon";
  EXPECT_EQ(Cpus(node.CpusOfBalloon("fullsocket[0]")).size(), 2) << "1500m are asked for";
}

// Devices whose places the kubelet reports (row 24).

constexpr std::string_view kDeviceTypes = R"(
reservedResources: {cpu: "cpuset:0"}
balloonTypes:
- {name: nic, preferNewBalloons: true, preferSpreadingPods: true, preferCloseToDevices: ["podresourceapi:telco.com/*"]}
- {name: tpu, preferNewBalloons: true, preferSpreadingPods: true, preferCloseToDevices: ["podresourceapi:tech.com/tpu"]}
)";

// A container of the type with a device near to these nodes, as the kubelet reports it.
ContainerKey RunNear(BalloonsNode& node, std::string_view name, std::string_view type,
                     std::string_view resource, const NodeSet& nodes, int64_t request = 1000) {
  const ContainerKey key = node.Add(name, {.request = request, .type = type});
  node.snapshot().At(key).hints = {
      {.source = "pod-resources podresourceapi:" + std::string(resource),
       .cpus = {},
       .nodes = nodes}};
  EXPECT_TRUE(node.Place(key).ok()) << name;
  return key;
}

TEST(BalloonsDevicesTest, ANodeWithoutCpusIsNearToThoseBesideIt) {
  BalloonsNode node(kDeviceTypes, Hbm());
  EXPECT_TRUE(node.SetOf(RunNear(node, "a", "tpu", "tech.com/tpu", {2})).IsSubsetOf(Cpus("1-3")));
  EXPECT_TRUE(node.SetOf(RunNear(node, "b", "tpu", "tech.com/tpu", {3})).IsSubsetOf(Cpus("4-7")));
  EXPECT_TRUE(node.SetOf(RunNear(node, "c", "tpu", "tech.com/tpu", {4})).IsSubsetOf(Cpus("1-3")));
}

TEST(BalloonsDevicesTest, ContainersLandOnTheNodesOfTheirDevices) {
  BalloonsNode node(kDeviceTypes);
  const CpuSet first = node.SetOf(RunNear(node, "a", "nic", "telco.com/nic", {2, 3}));
  const CpuSet second = node.SetOf(RunNear(node, "b", "nic", "telco.com/nic", {2, 3}));
  const CpuSet low = node.SetOf(RunNear(node, "c", "nic", "telco.com/nic", {0, 1}));
  EXPECT_TRUE((first | second).IsSubsetOf(Cpus("8-15")));
  EXPECT_FALSE(first.Intersects(second));
  EXPECT_TRUE(low.IsSubsetOf(Cpus("1-7")));
  for (int of = 0; of < 4; ++of) {
    const std::string name = "tpu" + std::to_string(of);
    const CpuSet cpus = node.SetOf(RunNear(node, name, "tpu", "tech.com/tpu", {of}));
    EXPECT_TRUE(cpus.IsSubsetOf(CpuSet::Range(4 * of, 4 * of + 3))) << cpus.ToString();
  }
}

TEST(BalloonsDevicesTest, OnlyDevicesThatTheTypeNamesCount) {
  BalloonsNode node(kDeviceTypes);
  const CpuSet other = node.SetOf(RunNear(node, "other", "tpu", "telco.com/nic", {3}));
  const CpuSet none = node.SetOf(RunNear(node, "none", "", "tech.com/tpu", {3}));
  EXPECT_FALSE((other | none).Intersects(Cpus("12-15")));
}

TEST(BalloonsDevicesTest, HintWithTooFewCpusIsDroppedAndTold) {
  BalloonsNode node(kDeviceTypes);
  const ContainerKey key = RunNear(node, "large", "tpu", "tech.com/tpu", {3}, 6000);
  EXPECT_EQ(node.SetOf(key).size(), 6);
  EXPECT_THAT(node.policy().Explain(key),
              Contains(HasSubstr("not followed: close to podresourceapi:tech.com/tpu")));
}

TEST(BalloonsDevicesTest, TheSamePlaceOfManyDevicesIsOneHint) {
  BalloonsNode node("balloonTypes: [{name: x, preferCloseToDevices: [\"podresourceapi:*\"]}]");
  ContainerKey last{};
  for (int i = 0; i < 6; ++i)
    last = RunNear(node, fmt::format("c{}", i), "x", fmt::format("tech.com/d{}", i), {3});
  ASSERT_EQ(node.SetOf(last).size(), 6);
  int told = 0;
  for (const std::string& line : node.policy().Explain(last))
    told += line.find("not followed") == std::string::npos ? 0 : 1;
  EXPECT_EQ(told, 1);
}

TEST(BalloonsDevicesTest, KubeletIsAskedForTypesThatNameItsDevices) {
  EXPECT_TRUE(BalloonsNode(kDeviceTypes).policy().WantsPodResources());
  const std::string off = "agent: {podResourceAPI: false}\n" + std::string(kDeviceTypes);
  EXPECT_FALSE(BalloonsNode(off).policy().WantsPodResources());
  EXPECT_FALSE(BalloonsNode("balloonTypes: [{name: a, preferCloseToDevices: [/dev/nvme0]}]")
                   .policy()
                   .WantsPodResources());
}

}  // namespace
}  // namespace resmgr
