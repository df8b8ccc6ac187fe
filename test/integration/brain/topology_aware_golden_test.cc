// SPDX-License-Identifier: Apache-2.0
// The expectations of cri-resource-manager's unit tests of its topology-aware policy, on machines
// of the same shape, through the brain; and invariants over restarts.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/cri-resmgr-ctl/pools_drawing.h"
#include "pkg/admin/node_json.h"
#include "pkg/base/parse.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "pkg/sys/files.h"
#include "test/integration/brain/topology_aware_node.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

using testing::Not;

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

// The output of `cri-resmgr-ctl pools` for the topology-aware policy with containers in its pools.
// The drawings and the JSON stand in cmd/cri-resmgr-ctl/testdata; with RESMGR_UPDATE_GOLDEN set
// they are written anew.

using enum QosClass;

OrderedJson PoolsOf(TopologyAwareNode& node) {
  return PoolsJson(node.node().policy(), node.node().manager().snapshot());
}

void ExpectFile(const std::string& name, const std::string& text) {
  const std::string file = RESMGR_SOURCE_DIR "/cmd/cri-resmgr-ctl/testdata/" + name;
  if (std::getenv("RESMGR_UPDATE_GOLDEN") != nullptr) std::ofstream(file) << text;
  EXPECT_EQ(ReadFile(file, size_t{1} << 20).value_or(""), text) << name;
}

void ExpectGolden(const std::string& name, TopologyAwareNode& node) {
  const OrderedJson pools = PoolsOf(node);
  const std::string drawing = DrawPools(pools);
  ExpectFile(fmt::format("pools-{}.txt", name), drawing);
  std::string json;
  for (const OrderedJson& pool : pools)
    json += pool.dump() + '\n';
  ExpectFile(fmt::format("pools-{}.json", name), json);
  for (const std::string_view line : Split(drawing, '\n')) {
    EXPECT_LE(line.size(), 120U) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

TEST(PoolsGoldenTest, TwoPackagesOfTwoNodes) {
  TopologyAwareNode node(N4C16(), {});
  node.MustRun({.name = "dns", .milli_cpu = {100}, .name_space = "kube-system"});
  node.MustRun({.name = "db", .milli_cpu = {2000, 1500}, .memory = 4 * kGiB});
  node.MustRun({.name = "web", .qos = kBurstable, .milli_cpu = {500, 500}, .limit = 2000});
  node.MustRun({.name = "big", .milli_cpu = {5000}, .memory = 20 * kGiB});
  node.MustRun({.name = "log", .qos = kBestEffort, .milli_cpu = std::vector<int64_t>(20, 0)});
  ExpectGolden("n4c16", node);
}

TEST(PoolsGoldenTest, PackagesOfOneCpuWithPmem) {
  TopologyAwareNode node(C4Pmem4(), {});
  node.MustRun({.name = "etl",
                .milli_cpu = {750},
                .memory = kGiB,
                .annotations = {{"cold-start.resource-policy.nri.io", "duration: 60s"}}});
  node.MustRun({.name = "cache",
                .milli_cpu = {500},
                .memory = 3 * kGiB,
                .annotations = {{"memory-type.resource-policy.nri.io", "pmem"}}});
  node.MustRun({.name = "wide", .milli_cpu = {1500}, .memory = kGiB});
  ExpectGolden("c4pmem4", node);
}

// Caches of four, six and two CPUs in the first package, one of four in the second; the node of the
// second has no memory.
TEST(PoolsGoldenTest, UnevenCaches) {
  Machine::Parts parts;
  for (int id = 0; id < 16; ++id) {
    Cpu cpu;
    cpu.id = cpu.core = id;
    cpu.online = true;
    cpu.l3 = id < 4 ? 0 : id < 10 ? 1 : id < 12 ? 2 : 3;
    cpu.package = cpu.numa = id < 12 ? 0 : 1;
    cpu.isolated = id == 11;
    parts.cpus.push_back(cpu);
    parts.allowed.Add(id);
  }
  for (int id = 0; id < 2; ++id) {
    NumaNode memory;
    memory.id = id;
    memory.type = MemoryType::kDram;
    memory.memory = Bytes{id == 0 ? 32 * kGiB : 0};
    memory.distances = id == 0 ? std::vector<int>{10, 20} : std::vector<int>{20, 10};
    parts.nodes.push_back(std::move(memory));
  }
  TopologyAwareNode node(MakeMachine(std::move(parts)), {});
  node.MustRun({.name = "pinned", .milli_cpu = {1000, 3000}, .memory = kGiB});
  node.MustRun({.name = "burst", .qos = kBurstable, .milli_cpu = {2500}, .limit = 5000});
  node.MustRun({.name = "small", .milli_cpu = {300, 300, 300}, .memory = kGiB / 2});
  ExpectGolden("uneven-caches", node);
}

// Lists of CPUs that do not fit on a line.
TEST(PoolsGoldenTest, ManyFragmentedCpus) {
  TopologyAwareNode node(L256(), {.reserved = "0,128"});
  for (int i = 0; i < 100; ++i)
    node.MustRun({.name = fmt::format("p{}", i), .milli_cpu = {i % 3 == 0 ? 1000 : 3000}});
  for (int i = 0; i < 100; i += 3)
    node.End(fmt::format("p{}c0", i));
  ExpectGolden("fragmented", node);
}

TEST(PoolsGoldenTest, ControlCharactersDoNotReachTheTerminal) {
  OrderedJson pool = {{"name", "a\x1b[2J"},    {"parent", ""},     {"cpus", "0"},
                      {"shared", "0"},         {"exclusive", ""},  {"mems", ""},
                      {"free", -500},          {"memoryBytes", 0}, {"memoryUsed", 0},
                      {"containers", {"x\ny"}}};
  const std::string drawing = DrawPools(OrderedJson::array({pool}));
  EXPECT_THAT(drawing, Not(testing::HasSubstr("\x1b")));
  EXPECT_THAT(drawing, testing::HasSubstr("-0.5 of 1"));
  EXPECT_THAT(drawing, testing::HasSubstr("x\\x0ay"));
  EXPECT_THAT(drawing, Not(testing::HasSubstr("overhead")));
  pool["overhead"] = {{"cpu", 1250}, {"memory", 160 << 20}};
  EXPECT_THAT(DrawPools(OrderedJson::array({pool})),
              testing::HasSubstr("  - pod overhead: 1.25 CPUs, 160 MiB\n"));
  EXPECT_EQ(DrawPools(OrderedJson::array()), "the policy has no pools\n");
  // No pool stands above it: nothing to draw, and no endless loop.
  pool["parent"] = pool["name"];
  EXPECT_EQ(Split(DrawPools(OrderedJson::array({pool})), '\n').size(), 2U);
}

// Containers on isolated CPUs that grow and shrink, and their places after a restart.

const StringMap kPrefersIsolated = {{"prefer-isolated-cpus.resource-policy.nri.io", "true"}};

// Two packages of eight CPUs without siblings; CPU 0 is reserved.
Machine TwoPackages(std::string_view isolated) {
  return WithIsolated(MakeMachine({.packages = 2, .cores = 8}), isolated);
}

class TopologyAwareResizeTest : public testing::Test {
 protected:
  TopologyAwareNode& Start(std::string_view isolated) {
    node_ = std::make_unique<TopologyAwareNode>(TwoPackages(isolated), TopologyAwareNode::Setup{});
    node_->node().KeepState(files_);
    return *node_;
  }

  // A restart moves no container.
  void ExpectTakenOver(const std::string& container) {
    const std::string cpus = node_->CpuList(container);
    const std::string exclusive = node_->Exclusive(container).ToString();
    node_->node().FlushState();
    node_->Restart();
    EXPECT_EQ(node_->CpuList(container), cpus);
    EXPECT_EQ(node_->Exclusive(container).ToString(), exclusive);
  }

 private:
  CrashingFileSystem files_{1};
  std::unique_ptr<TopologyAwareNode> node_;
};

TEST_F(TopologyAwareResizeTest, GrowsFromIsolatedCpusToOrdinaryOnesOfItsPool) {
  TopologyAwareNode& node = Start("6-7,14");
  node.MustRun({.name = "a", .milli_cpu = {2000}, .annotations = kPrefersIsolated});
  node.MustRun({.name = "b", .milli_cpu = {3000}});
  ASSERT_EQ(node.CpuList("ac0"), "6-7");
  const std::string pool = node.Pool("ac0");
  const std::string mems = node.Mems("ac0");
  ASSERT_TRUE(node.Resize("ac0", 3000).ok());
  EXPECT_TRUE(Cpus("6-7").IsSubsetOf(node.Cpus("ac0"))) << node.CpuList("ac0");
  EXPECT_EQ(node.Exclusive("ac0").size(), 3);
  EXPECT_EQ(node.Pool("ac0"), pool);
  EXPECT_EQ(node.Mems("ac0"), mems);
  ExpectTakenOver("ac0");
  ASSERT_TRUE(node.Resize("ac0", 2000).ok());
  EXPECT_EQ(node.CpuList("ac0"), "6-7") << "the isolated ones are kept";
}

TEST_F(TopologyAwareResizeTest, GrowsToFurtherIsolatedCpusWhereItHoldsSuch) {
  TopologyAwareNode& node = Start("6-7,14");
  node.MustRun({.name = "a", .milli_cpu = {1000}});
  ASSERT_EQ(node.CpuList("ac0"), "6");
  ASSERT_TRUE(node.Resize("ac0", 2000).ok());
  EXPECT_EQ(node.CpuList("ac0"), "6-7");
  ExpectTakenOver("ac0");
  ASSERT_TRUE(node.Resize("ac0", 1000).ok());
  EXPECT_EQ(node.CpuList("ac0"), "6");
}

TEST_F(TopologyAwareResizeTest, KeepsOrdinaryCpusAlsoWhenEnoughIsolatedOnesAreFree) {
  TopologyAwareNode& node = Start("4-7");
  node.MustRun({.name = "first", .milli_cpu = {3000}, .annotations = kPrefersIsolated});
  node.MustRun({.name = "a",
                .milli_cpu = {2000},
                .annotations = kPrefersIsolated,
                .hints = {{"device /dev/sda", Cpus("0-7"), {}}}});
  ASSERT_EQ(node.CpuList("ac0"), "1-2");
  node.End("firstc0");
  ASSERT_TRUE(node.Resize("ac0", 3000).ok());
  EXPECT_EQ(node.CpuList("ac0"), "1-3");
}

TEST_F(TopologyAwareResizeTest, GrowsToBothKindsWhereNeitherHasEnough) {
  TopologyAwareNode& node = Start("6-7");
  node.MustRun({.name = "a", .milli_cpu = {1000}});
  node.MustRun({.name = "b", .milli_cpu = {4000}, .hints = {{"device /dev/sda", Cpus("0-7"), {}}}});
  ASSERT_EQ(node.CpuList("ac0"), "6");
  ASSERT_EQ(node.CpuList("bc0"), "1-4");
  ASSERT_TRUE(node.Resize("ac0", 3000).ok());
  EXPECT_EQ(node.CpuList("ac0"), "5-7");
  ExpectTakenOver("ac0");
}

TEST_F(TopologyAwareResizeTest, AMixedPlaceKeepsItsIsolatedCpusAndSomethingToShare) {
  TopologyAwareNode& node = Start("6-7");
  StringMap annotations = kPrefersIsolated;
  annotations.Set("prefer-shared-cpus.resource-policy.nri.io", "false");
  node.MustRun({.name = "a", .milli_cpu = {2500}, .annotations = annotations});
  ASSERT_EQ(node.Exclusive("ac0"), Cpus("6-7"));
  ASSERT_TRUE(node.Resize("ac0", 4500).ok());
  EXPECT_EQ(node.Exclusive("ac0").size(), 4);
  EXPECT_TRUE(Cpus("6-7").IsSubsetOf(node.Exclusive("ac0")));
  EXPECT_EQ(node.Pool("ac0"), "socket #0");
  EXPECT_GT(node.Cpus("ac0").size(), 4);
  ExpectTakenOver("ac0");
}

TEST_F(TopologyAwareResizeTest, RequiredIsolatedCpusAreNotMixedWithOthers) {
  TopologyAwareNode& node = Start("6-7");
  node.MustRun({.name = "a",
                .milli_cpu = {1000},
                .annotations = {{"require-isolated-cpus.resource-policy.nri.io", "true"}}});
  ASSERT_TRUE(node.Resize("ac0", 2000).ok());
  EXPECT_EQ(node.CpuList("ac0"), "6-7");
  EXPECT_FALSE(node.Resize("ac0", 3000).ok());
  EXPECT_EQ(node.CpuList("ac0"), "6-7");
}

}  // namespace
}  // namespace resmgr::test
