// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/server_types.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(ServerTypesTest, EachIsAMachineWithFourGibForEachCpu) {
  for (const ServerType& type : ServerTypes()) {
    SCOPED_TRACE(std::string(type.name));
    EXPECT_EQ(FindServerType(type.name), &type);
    EXPECT_FALSE(type.description.empty());
    const auto machine = LoadMachine(type.name);
    ASSERT_TRUE(machine.ok()) << machine.status();
    int64_t memory = 0;
    for (const NumaNode& node : machine->nodes())
      memory += node.memory.value;
    EXPECT_EQ(memory, int64_t{machine->online().size()} * (4LL << 30));
  }
  EXPECT_EQ(FindServerType("epyc"), nullptr);
  EXPECT_EQ(FindServerType("zzz"), nullptr);
}

TEST(ServerTypesTest, SecondThreadsComeAfterAllCoresAndNodesHaveTheirDistances) {
  const auto machine = LoadMachine("epyc-9654-2s-nps4");
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->online().size(), 384);
  EXPECT_THAT(machine->packages(), SizeIs(2));
  EXPECT_THAT(machine->l3_groups(), SizeIs(24));
  EXPECT_EQ(machine->cores()[0].ToString(), "0,192");
  EXPECT_EQ(machine->l3_groups()[1].ToString(), "8-15,200-207");
  EXPECT_EQ(machine->nodes()[7].cpus.ToString(), "168-191,360-383");
  EXPECT_THAT(machine->nodes()[0].distances, ElementsAre(10, 12, 12, 12, 32, 32, 32, 32));
}

// Clusters of one package share its cache.
TEST(ServerTypesTest, SubNumaClustersShareTheirPackagesCache) {
  const auto machine = LoadMachine("xeon-8480-2s-snc4");
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->online().size(), 224);
  EXPECT_THAT(machine->l3_groups(), SizeIs(2));
  EXPECT_THAT(machine->nodes(), SizeIs(8));
}

TEST(ServerTypesTest, SyntheticMachinesTakeTheMemoryThatIsGivenForEachCpu) {
  const auto open = LoadMachine("synthetic:numa:2 core:3 pu:2", kSyntheticMemoryPerCpu);
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(open->nodes()[1].memory.value, 24LL << 30);
  EXPECT_TRUE(LeavesMemoryOpen(" synthetic:numa:2 core:3 pu:2"));

  constexpr std::string_view kTold = "synthetic:numa:2(memory=64GiB) core:3 pu:2";
  const auto told = LoadMachine(kTold, kSyntheticMemoryPerCpu);
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->nodes()[1].memory.value, 64LL << 30);
  EXPECT_FALSE(LeavesMemoryOpen(kTold));
  EXPECT_FALSE(LeavesMemoryOpen("live"));
  EXPECT_FALSE(LeavesMemoryOpen("epyc-9124"));
}

}  // namespace
}  // namespace resmgr
