// SPDX-License-Identifier: Apache-2.0
// The output of `cri-resmgr-ctl pools` for the topology-aware policy with containers in its pools.
// The drawings and the JSON stand in cmd/cri-resmgr-ctl/testdata; with RESMGR_UPDATE_GOLDEN set
// they are written anew.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/cri-resmgr-ctl/pools_drawing.h"
#include "pkg/admin/node_json.h"
#include "pkg/base/parse.h"
#include "pkg/sys/files.h"
#include "test/integration/brain/topology_aware_node.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

using testing::Not;

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

}  // namespace
}  // namespace resmgr::test
