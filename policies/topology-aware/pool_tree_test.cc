// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/pool_tree.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/topology-aware/testing/topology_node.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using enum QosClass;

std::vector<std::string> NamesOf(const PoolTree& tree) {
  std::vector<std::string> names;
  for (const Pool& pool : tree.pools())
    names.push_back(pool.name);
  return names;
}

PoolTree TreeOf(const Machine& machine) {
  return PoolTree(machine, machine.allowed(), {});
}

// Memory of the nodes in MiB; their CPUs stay.
Machine WithMemory(const Machine& machine, const std::vector<int>& mebibytes) {
  Machine::Parts parts = test::PartsOf(machine);
  for (size_t i = 0; i < parts.nodes.size(); ++i)
    parts.nodes[i].memory = Bytes{int64_t{mebibytes[i]} << 20};
  return test::MakeMachine(std::move(parts));
}

TEST(PoolTreeTest, ADesktopIsOnePool) {
  EXPECT_THAT(NamesOf(TreeOf(test::MakeMachine({.cores = 10, .threads = 2}))),
              ElementsAre("socket #0"));
}

TEST(PoolTreeTest, ServersHaveTheirParts) {
  const Machine two = test::MakeMachine({.packages = 2, .nodes = 2, .cores = 14, .threads = 2});
  EXPECT_THAT(NamesOf(TreeOf(two)),
              ElementsAre("NUMA node #0", "NUMA node #1", "socket #0", "NUMA node #2",
                          "NUMA node #3", "socket #1", "root"));
  EXPECT_EQ(TreeOf(two).at(0).cpus.size(), 28);
  const Machine four = test::MakeMachine({.packages = 4, .cores = 18, .threads = 2});
  EXPECT_THAT(NamesOf(TreeOf(four)),
              ElementsAre("socket #0", "socket #1", "socket #2", "socket #3", "root"));
  EXPECT_EQ(TreeOf(four).at(0).cpus.size(), 36);
}

TEST(PoolTreeTest, CachesDivideNodes) {
  EXPECT_THAT(NamesOf(TreeOf(test::U16TwoNodes())),
              ElementsAre("L3 cache #0", "L3 cache #1", "NUMA node #0", "L3 cache #2",
                          "L3 cache #3", "NUMA node #1", "socket #0"));
}

TEST(PoolTreeTest, NodesMayHoldPackages) {
  EXPECT_THAT(NamesOf(TreeOf(test::F80())),
              ElementsAre("socket #0", "socket #1", "NUMA node #0", "socket #2", "socket #3",
                          "NUMA node #1", "root"));
}

TEST(PoolTreeTest, ANodeWithoutMemoryBelongsToWhatIsAroundIt) {
  const Machine machine = WithMemory(test::U16TwoNodes(), {16, 0});
  const PoolTree tree = TreeOf(machine);
  EXPECT_EQ(tree.Find("NUMA node #1"), -1);
  const int cache = tree.Find("L3 cache #2");
  ASSERT_GE(cache, 0);
  EXPECT_EQ(tree.at(tree.at(cache).parent).name, "socket #0");
  EXPECT_EQ(tree.at(tree.at(cache).memory_pool).nodes[kAllMemoryTypes].ToString(), "0");
}

TEST(PoolTreeTest, MemoryThatIsNotAllowedCountsNowhere) {
  Machine::Parts parts = test::PartsOf(test::U16TwoNodes().cpus());
  for (NumaNode& node : parts.nodes)
    node.memory = Bytes{int64_t{16} << 30};
  parts.nodes[1].allowed = false;
  const Machine machine = test::MakeMachine(std::move(parts));
  const PoolTree tree = TreeOf(machine);
  EXPECT_EQ(tree.Find("NUMA node #1"), -1);
  const Pool& root = tree.at(tree.root());
  EXPECT_EQ(root.nodes[kAllMemoryTypes], NodeSet{0});
  EXPECT_EQ(root.capacity[kAllMemoryTypes], Bytes{int64_t{16} << 30});
  EXPECT_EQ(tree.at(tree.Find("L3 cache #3")).memory_pool, tree.root());
}

TEST(PoolTreeTest, CpusAreOrdinaryIsolatedOrReserved) {
  Machine::Parts parts = test::PartsOf(test::M80().cpus());
  for (Cpu& cpu : parts.cpus)
    cpu.isolated = cpu.id >= 8 && cpu.id < 10;
  const Machine machine = test::MakeMachine(std::move(parts));
  const PoolTree tree(machine, machine.allowed() - test::Cpus("7"), test::Cpus("0"));
  const Pool& node = tree.at(tree.Find("NUMA node #0"));
  EXPECT_EQ(node.cpus.ToString(), "0-6,8-9,40-49");
  EXPECT_EQ(node.reserved.ToString(), "0");
  EXPECT_EQ(node.isolated.ToString(), "8-9");
  EXPECT_EQ(node.sharable.ToString(), "1-6,40-49");
  EXPECT_EQ(tree.at(tree.root()).sharable.size(), 76);
}

TEST(PoolTreeTest, AttachesMemoryOnlyNodesEvenly) {
  // Equally far from both nodes: each gets one.
  Machine::Parts parts = test::PartsOf(test::S2NoHt().cpus());
  for (int id = 0; id < 4; ++id) {
    NumaNode node;
    node.id = id;
    node.memory = Bytes{int64_t{1} << 30};
    node.type = id < 2 ? MemoryType::kDram : MemoryType::kHbm;
    node.distances = {20, 20, 20, 20};
    node.distances[static_cast<size_t>(id)] = 10;
    if (id < 2) {
      parts.nodes[static_cast<size_t>(id)] = node;
    } else {
      parts.nodes.push_back(node);
    }
  }
  const Machine machine = test::MakeMachine(std::move(parts));
  const PoolTree tree = TreeOf(machine);
  EXPECT_EQ(tree.at(0).nodes[kAllMemoryTypes].ToString(), "0,2");
  EXPECT_EQ(tree.at(1).nodes[kAllMemoryTypes].ToString(), "1,3");
  EXPECT_EQ(tree.at(1).nodes[kHbmBit].ToString(), "3");
  EXPECT_EQ(tree.at(tree.root()).memory_types, kDramBit | kHbmBit);
}

TEST(PoolTreeTest, MeasuresDistances) {
  const Machine machine = test::MakeMachine({.packages = 2, .nodes = 2, .cores = 2});
  const PoolTree tree = TreeOf(machine);
  EXPECT_EQ(tree.Distance(0, 0), 0);
  EXPECT_EQ(tree.Distance(0, tree.root()), 2);
  EXPECT_EQ(tree.Distance(tree.root(), 0), 2);
  EXPECT_EQ(tree.Distance(0, 1), -1);
  EXPECT_EQ(tree.SmallestWith(test::Cpus("0-1")), 0);
  EXPECT_EQ(tree.SmallestWith(test::Cpus("0,2")), tree.Find("socket #0"));
  EXPECT_EQ(tree.SmallestWith({}), tree.root());
}

// Classes that the section gives to containers with CPUs of their own, that share, and that are on
// reserved CPUs.

class PoolClassesTest : public testing::Test, protected test::TopologyNode {
 protected:
  PoolClassesTest() : TopologyNode(test::S1Ht()) {}

  ContainerKey RunIn(std::string_view namespace_name, std::string_view name, QosClass qos,
                     int64_t milli_cpu, const StringMap& annotations = {}) {
    const ContainerKey key = snapshot().Add(name, qos, milli_cpu).key;
    snapshot().PodOf(key).namespace_name = std::string(namespace_name);
    snapshot().PodOf(key).annotations = annotations;
    return *Place(key);
  }
  static std::string SectionError(std::string_view text) {
    const ConfigNode section = ParseYaml(text, "a.yaml").value();
    return std::string(Message(ReadTopologyAwareOptions(&section).status()));
  }
};

TEST_F(PoolClassesTest, AContainerHasThoseOfItsKindOfPool) {
  ChangeSection(
      "{PoolClasses: {exclusive: {cpuClass: fast, rdtClass: gold}, shared: {rdtClass: bronze}, "
      "reserved: {blockioClass: slow}}, SharedPoolCPUClass: plain}");
  EXPECT_EQ(policy().ClassesOf(RunIn("default", "own", kGuaranteed, 2000)),
            (ClassNames{{"cpu", "fast"}, {"rdt", "gold"}}));
  const ClassNames shared = {{"cpu", "plain"}, {"rdt", "bronze"}};
  EXPECT_EQ(policy().ClassesOf(RunIn("default", "some", kBurstable, 200)), shared);
  EXPECT_EQ(policy().ClassesOf(RunIn("kube-system", "system", kBurstable, 100)),
            (ClassNames{{"blockio", "slow"}}));
  EXPECT_EQ(policy().ClassesOf(ContainerKey{}), ClassNames());
  const std::vector<Zone> zones = policy().Zones(snapshot());
  EXPECT_EQ(zones.front().classes, shared);
  EXPECT_EQ(zones.back().classes, (ClassNames{{"blockio", "slow"}})) << zones.back().name;
}

TEST_F(PoolClassesTest, AnAnnotationOfCrioAddsTheSharedCpusOfThePool) {
  const ContainerKey own = RunIn("ns", "own", kGuaranteed, 2000);
  const Placement& alone = snapshot().At(own).placement;
  EXPECT_EQ(alone.cpus, alone.exclusive);
  const ContainerKey mixed =
      RunIn("ns", "mixed", kGuaranteed, 2000, StringMap({{"cpu-shared.crio.io/mixed", "enable"}}));
  const Placement& placement = snapshot().At(mixed).placement;
  EXPECT_EQ(placement.exclusive.size(), 2);
  const CpuSet shared = *placement.cpus - placement.exclusive;
  EXPECT_FALSE(shared.empty());
  EXPECT_FALSE(shared.Intersects(alone.exclusive));
}

TEST_F(PoolClassesTest, NamesAreListedWithTheirPlace) {
  std::vector<std::string> all;
  for (const NamedClass& one : TopologyAwareNamedClasses(
           ParseYaml("{DefaultExclusiveCPUClass: fast, ReservedPoolCPUClass: slow}", "f").value()))
    all.push_back(one.where + " " + one.name);
  EXPECT_EQ(all, (std::vector<std::string>{"PoolClasses.exclusive: cpuClass fast",
                                           "PoolClasses.reserved: cpuClass slow"}));
}

TEST_F(PoolClassesTest, WhatItCannotBeIsRefused) {
  EXPECT_EQ(SectionError("cpuClasses: [{name: fast, maxFreq: turbo}]"), "");
  EXPECT_THAT(SectionError("cpuClasses: [{name: fast, maxFreq: much}]"),
              HasSubstr("is no clock rate"));
  EXPECT_THAT(SectionError("controllableInterrupts: ['[']"),
              HasSubstr("controllableInterrupts: \"[\" has [ without ]"));
  EXPECT_THAT(SectionError("PodQoSSchedulingClasses: {}"), HasSubstr("PoolClasses"));
  EXPECT_THAT(SectionError("Control: {}"), HasSubstr("config convert"));
  EXPECT_THAT(SectionError("PoolClasses: {idle: {}}"), HasSubstr("idle"));
}

}  // namespace
}  // namespace resmgr
