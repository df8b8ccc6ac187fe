// SPDX-License-Identifier: Apache-2.0
// The expectations of cri-resource-manager's unit tests of its topology-aware policy, on machines
// of the same shape, through the brain; and invariants over restarts.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/brain/topology_aware_node.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

struct ServerShape {
  int cpus_per_node = 10;
  int64_t dram = 16 * kGiB;
  int64_t pmem = 0;  // PMEM node beside each node; 0: there is none
};

// Two packages of two nodes each, numbered across them: 0 and 2 on the first, 1 and 3 on the
// second; PMEM nodes 4 to 7 beside 0 to 3.
Machine Server(const ServerShape& shape) {
  Machine::Parts parts;
  const int cpus = 4 * shape.cpus_per_node;
  for (int id = 0; id < cpus; ++id) {
    const int place = id / shape.cpus_per_node;  // in the order of the CPUs
    Cpu cpu;
    cpu.id = cpu.core = id;
    cpu.package = cpu.l3 = place / 2;
    cpu.numa = place / 2 + 2 * (place % 2);
    cpu.online = true;
    parts.cpus.push_back(cpu);
    parts.allowed.Add(id);
  }
  const int nodes = shape.pmem > 0 ? 8 : 4;
  for (int id = 0; id < nodes; ++id) {
    NumaNode node;
    node.id = id;
    node.type = id < 4 ? MemoryType::kDram : MemoryType::kPmem;
    node.memory = Bytes{id < 4 ? shape.dram : shape.pmem};
    for (int other = 0; other < nodes; ++other)
      node.distances.push_back(id == other ? 10 : id % 4 == other % 4 ? 17 : 21);
    parts.nodes.push_back(std::move(node));
  }
  return MakeMachine(std::move(parts));
}

// A small container that a device holds at a place.
void Anchor(TopologyAwareNode& node, const std::string& name, const CpuSet& cpus) {
  node.MustRun({.name = name,
                .qos = QosClass::kBestEffort,
                .milli_cpu = {0},
                .hints = {{"device /dev/" + name, cpus, {}}}});
}

struct AffinityCase {
  const char* name;
  std::vector<std::pair<const char*, int>> others;  // by their anchor, with weights
  const char* pool;
};

TEST(TopologyAwareGoldenTest, FollowsAffinitiesToWhereTheyWeighMost) {
  const std::vector<AffinityCase> cases = {
      {"none", {}, "NUMA node #2"},
      {"to a node", {{"node1", 1}}, "NUMA node #1"},
      {"to a socket", {{"socket1", 1}}, "socket #1"},
      {"to both nodes of a socket", {{"node1", 1}, {"node3", 1}}, "socket #1"},
      {"more to one of them", {{"node1", 3}, {"node3", 1}}, "NUMA node #1"},
      {"to nodes of two sockets", {{"node0", 1}, {"node3", 1}}, "root"},
  };
  for (const AffinityCase& c : cases) {
    SCOPED_TRACE(c.name);
    TopologyAwareNode node(Server({}), {});
    Anchor(node, "node0", Cpus("1-9"));
    Anchor(node, "node1", Cpus("20-29"));
    Anchor(node, "node3", Cpus("30-39"));
    Anchor(node, "socket1", Cpus("20-39"));
    ASSERT_EQ(node.Pool("node1c0"), "NUMA node #1");
    ASSERT_EQ(node.Pool("socket1c0"), "socket #1");
    std::string affinity;
    for (const auto& [other, weight] : c.others) {
      affinity += fmt::format(
          "  - {{scope: {{key: name, operator: Exists}}, match: {{key: pod/name, operator: "
          "Equals, values: [{}]}}, weight: {}}}\n",
          other, weight);
    }
    StringMap annotations;
    if (!affinity.empty()) {
      annotations.Set("cri-resource-manager.intel.com/affinity", "pc0:\n" + affinity);
    }
    node.MustRun({.name = "p", .milli_cpu = {3000}, .annotations = annotations});
    EXPECT_EQ(node.Pool("pc0"), c.pool);
    EXPECT_EQ(node.Exclusive("pc0").size(), 3);
  }
}

TEST(TopologyAwareGoldenTest, ReservedContainersAreWhereTheReservedCpusAre) {
  TopologyAwareNode node(Server({}), {});
  node.MustRun({.name = "p", .milli_cpu = {300}, .name_space = "kube-system"});
  EXPECT_EQ(node.CpuList("pc0"), "0");
  EXPECT_EQ(node.Mems("pc0"), "0");
  for (const Zone& zone : node.node().policy().Zones(node.node().manager().snapshot())) {
    if (zone.name != "reserved") continue;
    EXPECT_EQ(zone.parent, "NUMA node #0");
  }
}

TEST(TopologyAwareGoldenTest, LeavesHoldWhatFits) {
  TopologyAwareNode node(Server({.cpus_per_node = 28}), {});
  node.MustRun({.name = "a", .milli_cpu = {25000}});
  EXPECT_EQ(node.Nodes("ac0"), 1);
  node.MustRun({.name = "b", .milli_cpu = {29000}});
  EXPECT_EQ(node.Nodes("bc0"), 2);
  EXPECT_EQ(node.Packages("bc0"), 1);
}

TEST(TopologyAwareGoldenTest, MemoryThatFitsNoDramTakesPmemBesideIt) {
  TopologyAwareNode node(Server({.cpus_per_node = 28, .dram = 96 * kGiB, .pmem = 126 * kGiB}), {});
  node.MustRun({.name = "p", .milli_cpu = {2000}, .memory = 190 * kGiB});
  EXPECT_EQ(node.Mems("pc0"), "2,6");
}

TEST(TopologyAwareGoldenTest, LittleMemoryLeavesPoolsOut) {
  TopologyAwareNode node(Server({.dram = 10 * kGiB}), {});
  node.MustRun({.name = "a", .milli_cpu = {1000}, .memory = 6 * kGiB});
  EXPECT_EQ(node.Mems("ac0"), "2");
  node.MustRun({.name = "b", .milli_cpu = {1000}, .memory = 18 * kGiB});
  EXPECT_EQ(node.Mems("bc0"), "1,3");
  const Status status = node.Run({.name = "c", .milli_cpu = {1000}, .memory = 30 * kGiB});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(status)), testing::HasSubstr("GiB of memory"));
}

TEST(TopologyAwareGoldenTest, ARestartChangesNothingForAnybody) {
  TopologyAwareNode node(N4C16(), {});
  node.MustRun({.name = "a", .milli_cpu = {2000, 1500, 300}, .memory = kGiB});
  node.MustRun({.name = "b", .qos = QosClass::kBurstable, .milli_cpu = {500, 700}, .limit = 2000});
  node.MustRun({.name = "c", .qos = QosClass::kBestEffort, .milli_cpu = {0}});
  node.MustRun({.name = "d", .milli_cpu = {100}, .name_space = "kube-system"});
  const std::vector<std::string> before = node.InForce();
  node.Restart();
  EXPECT_EQ(node.InForce(), before);
  EXPECT_TRUE(node.node().runtime.updates.empty());
}

TEST(TopologyAwareGoldenTest, AResizeKeepsThePoolAndTheCpus) {
  TopologyAwareNode node(N4C16(), {});
  node.MustRun({.name = "a", .milli_cpu = {1000}});
  ASSERT_EQ(node.CpuList("ac0"), "4");
  ASSERT_TRUE(node.Resize("ac0", 3000).ok());
  EXPECT_EQ(node.CpuList("ac0"), "4-6");
  ASSERT_TRUE(node.Resize("ac0", 2000).ok());
  EXPECT_EQ(node.CpuList("ac0"), "4-5");
  ASSERT_TRUE(node.Resize("ac0", 500).ok());
  EXPECT_EQ(node.CpuList("ac0"), "4-7");
  ASSERT_TRUE(node.Resize("ac0", 5000).ok());
  EXPECT_EQ(node.Packages("ac0"), 1);
  EXPECT_EQ(node.Exclusive("ac0").size(), 5);
  EXPECT_FALSE(node.Resize("ac0", 16000).ok());
  EXPECT_EQ(node.Exclusive("ac0").size(), 5);
}

}  // namespace
}  // namespace resmgr::test
