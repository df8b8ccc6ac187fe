// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kData = RESMGR_SOURCE_DIR "/test/data/topology/";

Machine LoadSample(std::string_view file) {
  StatusOr<Machine> machine = LoadMachine(std::string(kData).append(file));
  EXPECT_TRUE(machine.ok()) << Describe(machine.status());
  return *std::move(machine);
}

TEST(MachineFormatTest, JsonHasExactlyTheContractsKeys) {
  const Machine machine = *LoadMachine("synthetic:package:1 [numa(memory=1GiB)] core:1 pu:1");
  EXPECT_EQ(MachineToJson(machine),
            R"({"cpus":[{"id":0,"core":0,"l3":-1,"die":0,"numa":0,"package":0,"online":true,)"
            R"("isolated":false,"kind":"normal"}],)"
            R"("numa":[{"id":0,"memoryBytes":1073741824,"type":"dram","distances":[10]}]})");
}

TEST(MachineFormatTest, JsonTellsOfflineIsolatedAndSpecialParts) {
  const auto restricted = nlohmann::json::parse(MachineToJson(LoadSample("restricted-2s.xml")));
  EXPECT_EQ(restricted["cpus"].size(), 16U);
  EXPECT_EQ(restricted["cpus"][15]["online"], false);
  EXPECT_EQ(restricted["cpus"][15]["core"], -1);
  EXPECT_EQ(restricted["cpus"][6]["isolated"], true);
  const auto hybrid = nlohmann::json::parse(MachineToJson(LoadSample("alderlake-2p4e.xml")));
  EXPECT_EQ(hybrid["cpus"][0]["kind"], "performance");
  EXPECT_EQ(hybrid["cpus"][4]["kind"], "efficient");
  const auto pmem = nlohmann::json::parse(MachineToJson(LoadSample("xeon-2s-pmem.xml")));
  EXPECT_EQ(pmem["numa"][2]["type"], "pmem");
  EXPECT_EQ(pmem["numa"][2]["distances"], nlohmann::json({17, 28, 10, 28}));
}

TEST(MachineFormatTest, JsonTellsL2CachesThatCoresShare) {
  const auto shared =
      nlohmann::json::parse(MachineToJson(*LoadMachine("synthetic:package:1 l2:2 core:2 pu:1")));
  EXPECT_EQ(shared["cpus"][1]["l2"], 0);
  EXPECT_EQ(shared["cpus"][3]["l2"], 1);
}

TEST(MachineFormatTest, TableGroupsCoresOfOneKind) {
  EXPECT_EQ(MachineToTable(LoadSample("alderlake-2p4e.xml")),
            "8 CPUs online (0-7), 6 cores, 1 package, 1 die, 1 NUMA node, 32.0 GiB of memory\n"
            "\n"
            "NUMA  TYPE  MEMORY    CPUS  DISTANCES\n"
            "0     dram  32.0 GiB  0-7   10\n"
            "\n"
            "PACKAGE  DIE  NUMA  L3  KIND         THREADS  CORES  CPUS\n"
            "0        0    0     0   performance  2        0-1    0-3\n"
            "0        0    0     0   efficient    1        2-5    4-7\n");
}

TEST(MachineFormatTest, TableNamesCpusThatCannotBeUsed) {
  const std::string table = MachineToTable(LoadSample("restricted-2s.xml"));
  EXPECT_THAT(table, StartsWith("15 CPUs online (0-14), 8 cores, 2 packages"));
  EXPECT_THAT(table, HasSubstr("\noffline: 15\nisolated: 6-7,14\nnot allowed: 12-14\n"));
}

TEST(MachineFormatTest, TellsHugePages) {
  const Machine machine = LoadSample("hugepages-2s.xml");
  EXPECT_THAT(MachineToTable(machine), HasSubstr("\nhuge pages on node 0: 13 of 1.0 GiB\n"));
  const auto json = nlohmann::json::parse(MachineToJson(machine));
  EXPECT_EQ(json["numa"][0]["hugePages"].dump(), R"([{"count":13,"sizeBytes":1073741824}])");
  EXPECT_FALSE(json["numa"][1].contains("hugePages"));
}

TEST(MachineFormatTest, ANodeWithoutMemoryHasNoneThatIsNotAllowed) {
  const Machine whole = LoadSample("odd-memory.xml");
  ASSERT_EQ(whole.FindNode(1)->memory, Bytes{});
  Machine::Parts parts{.cpus = whole.cpus(), .nodes = whole.nodes(), .allowed = whole.allowed()};
  parts.nodes[1].allowed = false;
  EXPECT_EQ(MachineToTable(*Machine::Create(std::move(parts))), MachineToTable(whole));
}

TEST(MachineFormatTest, NamesMemoryThatContainersMayNotUse) {
  const Machine whole = LoadSample("odd-memory.xml");
  Machine::Parts parts{.cpus = whole.cpus(), .nodes = whole.nodes(), .allowed = whole.allowed()};
  parts.nodes[3].allowed = false;
  const Machine machine = *Machine::Create(std::move(parts));
  EXPECT_THAT(MachineToTable(machine), HasSubstr("\nmemory not allowed: 3\n"));
  const auto json = nlohmann::json::parse(MachineToJson(machine));
  EXPECT_EQ(json["numa"][3]["allowed"], false);
  EXPECT_FALSE(json["numa"][0].contains("allowed"));
}

TEST(MachineFormatTest, TableShowsNodesWithoutCpusOrMemory) {
  const std::string table = MachineToTable(LoadSample("odd-memory.xml"));
  EXPECT_THAT(table, HasSubstr("\n1     dram  0 B        2-3   14 10 16 30\n"));
  EXPECT_THAT(table, HasSubstr("\n3     dram  256.0 GiB  -     31 32 41 10\n"));
}

}  // namespace
}  // namespace resmgr
