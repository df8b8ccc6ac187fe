// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/machine.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two cores of two threads on one node; the siblings of CPU c are c and c + 2.
Machine::Parts TwoCores() {
  Machine::Parts parts;
  for (int id = 0; id < 4; ++id) {
    Cpu cpu;
    cpu.id = id;
    cpu.core = id % 2;
    cpu.l3 = 0;
    cpu.numa = 0;
    cpu.package = 0;
    cpu.online = true;
    parts.cpus.push_back(cpu);
  }
  NumaNode node;
  node.id = 0;
  node.memory = Bytes{1 << 30};
  parts.nodes.push_back(node);
  parts.allowed = CpuSet::Range(0, 3);
  return parts;
}

Machine Build(Machine::Parts parts) {
  StatusOr<Machine> machine = Machine::Create(std::move(parts));
  EXPECT_TRUE(machine.ok()) << Describe(machine.status());
  return *std::move(machine);
}

std::string CreateError(Machine::Parts parts) {
  const StatusOr<Machine> machine = Machine::Create(std::move(parts));
  if (machine.ok()) return "no error";
  EXPECT_EQ(machine.status().code(), StatusCode::kInvalidArgument);
  return std::string(Message(machine.status()));
}

TEST(MachineTest, IndexesGroupsByTheirIds) {
  const Machine machine = Build(TwoCores());
  EXPECT_THAT(machine.cores(), ElementsAre(CpuSet{0, 2}, CpuSet{1, 3}));
  EXPECT_THAT(machine.l3_groups(), ElementsAre(CpuSet::Range(0, 3)));
  EXPECT_THAT(machine.dies(), ElementsAre(CpuSet::Range(0, 3)));
  EXPECT_THAT(machine.packages(), ElementsAre(CpuSet::Range(0, 3)));
  EXPECT_EQ(machine.online(), CpuSet::Range(0, 3));
  EXPECT_EQ(machine.FindNode(0)->cpus, CpuSet::Range(0, 3));
  EXPECT_EQ(machine.FindCpu(3)->core, 1);
}

TEST(MachineTest, RenumbersGroupsInTheOrderOfTheirLowestCpu) {
  Machine::Parts parts = TwoCores();
  for (Cpu& cpu : parts.cpus) {
    cpu.core = cpu.id % 2 == 0 ? 70'000 : 12;
    cpu.package = 500;
  }
  const Machine machine = Build(std::move(parts));
  EXPECT_THAT(machine.cores(), ElementsAre(CpuSet{0, 2}, CpuSet{1, 3}));
  EXPECT_EQ(machine.FindCpu(0)->package, 0);
}

TEST(MachineTest, FillsInGroupsThatTheMachineDoesNotName) {
  Machine::Parts parts = TwoCores();
  for (Cpu& cpu : parts.cpus)
    cpu.core = cpu.l3 = cpu.die = cpu.package = -1;
  const Machine machine = Build(std::move(parts));
  EXPECT_EQ(machine.cores().size(), 4U);
  EXPECT_TRUE(machine.l3_groups().empty());
  EXPECT_EQ(machine.FindCpu(0)->l3, -1);
  EXPECT_THAT(machine.dies(), ElementsAre(CpuSet::Range(0, 3)));
  EXPECT_THAT(machine.packages(), ElementsAre(CpuSet::Range(0, 3)));
}

TEST(MachineTest, CoresHaveAnL2CacheEachUnlessTheyShareOne) {
  EXPECT_THAT(Build(TwoCores()).l2_groups(), ElementsAre(CpuSet{0, 2}, CpuSet{1, 3}));
  Machine::Parts shared = TwoCores();
  for (Cpu& cpu : shared.cpus)
    cpu.l2 = 7;
  EXPECT_THAT(Build(std::move(shared)).l2_groups(), ElementsAre(CpuSet::Range(0, 3)));
  // Virtual machines may tell a cache for each thread, and of only some cores.
  Machine::Parts odd = TwoCores();
  odd.cpus[0].l2 = 0;
  odd.cpus[2].l2 = 5;
  const Machine machine = Build(std::move(odd));
  EXPECT_THAT(machine.l2_groups(), ElementsAre(CpuSet{0, 2}, CpuSet{1, 3}));
  EXPECT_EQ(machine.Fingerprint(), Build(TwoCores()).Fingerprint());
}

TEST(MachineTest, PackagesWithoutDiesHaveOneEach) {
  Machine::Parts parts = TwoCores();
  for (Cpu& cpu : parts.cpus) {
    cpu.package = cpu.core;
    cpu.l3 = cpu.core;
  }
  EXPECT_THAT(Build(std::move(parts)).dies(), ElementsAre(CpuSet{0, 2}, CpuSet{1, 3}));
}

TEST(MachineTest, OfflineCpusAreInNoGroup) {
  Machine::Parts parts = TwoCores();
  parts.cpus[2].online = false;
  parts.cpus[2].isolated = true;
  const Machine machine = Build(std::move(parts));
  EXPECT_EQ(machine.online(), (CpuSet{0, 1, 3}));
  EXPECT_EQ(machine.allowed(), (CpuSet{0, 1, 3}));
  EXPECT_TRUE(machine.isolated().empty());
  EXPECT_EQ(machine.cores()[0], CpuSet{0});
  EXPECT_EQ(machine.FindCpu(2)->core, -1);
  EXPECT_EQ(machine.FindCpu(2)->numa, -1);
}

TEST(MachineTest, FindsNothingOutsideTheMachine) {
  const Machine machine = Build(TwoCores());
  EXPECT_EQ(machine.FindCpu(-1), nullptr);
  EXPECT_EQ(machine.FindCpu(4), nullptr);
  EXPECT_EQ(machine.FindCpu(CpuSet::kBits), nullptr);
  EXPECT_EQ(machine.FindNode(1), nullptr);
  EXPECT_EQ(machine.FindNode(NodeSet::kBits), nullptr);
}

TEST(MachineTest, WithSiblingsCompletesCores) {
  const Machine machine = Build(TwoCores());
  EXPECT_EQ(machine.WithSiblings(CpuSet{3}), (CpuSet{1, 3}));
  EXPECT_TRUE(machine.WithSiblings(CpuSet{9}).empty());
}

TEST(MachineTest, NodesOfNamesTheNodesThatCpusAreLocalTo) {
  Machine::Parts parts = TwoCores();
  NumaNode node;
  node.id = 5;
  parts.nodes.push_back(node);
  parts.cpus[1].numa = parts.cpus[3].numa = 5;
  const Machine machine = Build(std::move(parts));
  EXPECT_EQ(machine.NodesOf(CpuSet{0}), NodeSet{0});
  EXPECT_EQ(machine.NodesOf(CpuSet{2, 3}), (NodeSet{0, 5}));
  EXPECT_TRUE(machine.NodesOf(CpuSet{}).empty());
  EXPECT_EQ(machine.node_ids(), (NodeSet{0, 5}));
}

TEST(MachineTest, AssumesTheKernelsDistances) {
  Machine::Parts parts = TwoCores();
  NumaNode node;
  node.id = 1;
  parts.nodes.push_back(node);
  const Machine machine = Build(std::move(parts));
  EXPECT_THAT(machine.FindNode(0)->distances, ElementsAre(10, 20));
  EXPECT_THAT(machine.FindNode(1)->distances, ElementsAre(20, 10));
}

TEST(MachineTest, RefusesPartsThatContradictEachOther) {
  Machine::Parts twice = TwoCores();
  twice.cpus[2].id = 1;
  EXPECT_THAT(CreateError(twice), HasSubstr("CPU 1 comes twice or out of order"));

  Machine::Parts unknown_node = TwoCores();
  unknown_node.cpus[0].numa = 3;
  EXPECT_THAT(CreateError(unknown_node), HasSubstr("CPU 0 is of NUMA node 3"));

  Machine::Parts node_twice = TwoCores();
  node_twice.nodes.push_back(node_twice.nodes[0]);
  EXPECT_THAT(CreateError(node_twice), HasSubstr("NUMA node 0 comes twice"));

  Machine::Parts torn_core = TwoCores();
  torn_core.cpus[2].package = 1;
  EXPECT_THAT(CreateError(torn_core), HasSubstr("CPUs 0 and 2 are of one core"));

  Machine::Parts short_distances = TwoCores();
  short_distances.nodes[0].distances = {10, 20};
  EXPECT_THAT(CreateError(short_distances), HasSubstr("2 distances for 1 nodes"));
}

TEST(MachineTest, RefusesIdsThatSetsCannotHold) {
  Machine::Parts high_cpu = TwoCores();
  high_cpu.cpus[3].id = 8192;
  EXPECT_THAT(CreateError(high_cpu), HasSubstr("CPU 8192: ids from 0 to 8191"));
  Machine::Parts low_cpu = TwoCores();
  low_cpu.cpus[0].id = -1;
  EXPECT_THAT(CreateError(low_cpu), HasSubstr("CPU -1: ids from 0 to 8191"));
  Machine::Parts high_node = TwoCores();
  high_node.nodes[0].id = 8192;
  EXPECT_THAT(CreateError(high_node), HasSubstr("NUMA node 8192: ids from 0 to 8191"));
}

TEST(MachineTest, RefusesAMachineThatNothingCanRunOn) {
  Machine::Parts offline = TwoCores();
  for (Cpu& cpu : offline.cpus)
    cpu.online = false;
  EXPECT_THAT(CreateError(offline), HasSubstr("no CPU is online"));
  Machine::Parts disallowed = TwoCores();
  disallowed.allowed = CpuSet{17};
  EXPECT_THAT(CreateError(disallowed), HasSubstr("no online CPU is allowed"));
}

TEST(MachineTest, RefusesMoreHugePagesThanMemory) {
  Machine::Parts parts = TwoCores();
  parts.nodes[0].huge_pages = {{Bytes{2 << 20}, 256}, {Bytes{512 << 20}, 1}};
  EXPECT_EQ(Build(parts).nodes()[0].OrdinaryMemory(), Bytes{0});
  parts.nodes[0].huge_pages[0].count = 257;
  EXPECT_THAT(CreateError(parts), HasSubstr("NUMA node 0 has more huge pages than memory"));
}

TEST(MachineTest, FingerprintTellsMachinesApart) {
  const std::string fingerprint = Build(TwoCores()).Fingerprint();
  EXPECT_EQ(fingerprint.size(), 16U);
  EXPECT_EQ(Build(TwoCores()).Fingerprint(), fingerprint);

  Machine::Parts parts = TwoCores();
  parts.cpus[1].isolated = true;
  EXPECT_NE(Build(parts).Fingerprint(), fingerprint);
  parts = TwoCores();
  parts.nodes[0].type = MemoryType::kHbm;
  EXPECT_NE(Build(parts).Fingerprint(), fingerprint);
  parts = TwoCores();
  parts.cpus[3].kind = CoreKind::kEfficient;
  EXPECT_NE(Build(parts).Fingerprint(), fingerprint);
}

// An administrator may change the cgroup of pods and start the daemon again; its saved state is
// still valid.
TEST(MachineTest, FingerprintDoesNotTellWhatIsAllowed) {
  Machine::Parts parts = TwoCores();
  const std::string fingerprint = Build(parts).Fingerprint();
  parts.allowed.Remove(3);
  EXPECT_EQ(Build(parts).Fingerprint(), fingerprint);
  EXPECT_EQ(fingerprint, "d259174eec75a60f")
      << "another one would put the state of earlier versions aside";
}

TEST(MachineTest, FingerprintSurvivesBallooning) {
  Machine::Parts parts = TwoCores();
  const std::string fingerprint = Build(parts).Fingerprint();
  parts.nodes[0].memory = Bytes{1 << 29};
  EXPECT_EQ(Build(parts).Fingerprint(), fingerprint);
}

class OnlineCpusTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) {
    const std::string directory = root_.File("root") + "/sys/devices/system/cpu";
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/online") << text;
  }
  StatusOr<CpuSet> Read() const { return ReadOnlineCpus(root_.File("root")); }

  TempDir root_;
};

TEST_F(OnlineCpusTest, ReadsTheKernelsList) {
  Write("0-2,5\n");
  EXPECT_EQ(Read().value(), (CpuSet{0, 1, 2, 5}));
}

TEST_F(OnlineCpusTest, WhatIsNoListIsNoNews) {
  EXPECT_EQ(Read().status().code(), StatusCode::kNotFound);
  Write("\n");
  EXPECT_THAT(Message(Read().status()), HasSubstr("names no CPU"));
  Write("zero");
  EXPECT_THAT(Message(Read().status()), HasSubstr("/sys/devices/system/cpu/online"));
}

// Four CPUs on two nodes; those that are not online are in no group.
Machine MachineWith(const CpuSet& online, int distance = 20) {
  Machine::Parts parts;
  for (int id = 0; id < 4; ++id) {
    Cpu cpu;
    cpu.id = id;
    cpu.online = online.Contains(id);
    cpu.core = id / 2;
    cpu.package = cpu.numa = id / 2;
    parts.cpus.push_back(cpu);
  }
  for (const int id : {0, 1}) {
    NumaNode node;
    node.id = id;
    node.distances = id == 0 ? std::vector<int>{10, distance} : std::vector<int>{distance, 10};
    parts.nodes.push_back(node);
  }
  parts.allowed = online;
  StatusOr<Machine> machine = Machine::Create(std::move(parts));
  EXPECT_TRUE(machine.ok()) << Describe(machine.status());
  return *std::move(machine);
}

TEST(HardwareFingerprintTest, IsTheSameWhicheverCpusAreOnline) {
  const std::string all = HardwareFingerprint(MachineWith({0, 1, 2, 3}));
  EXPECT_EQ(all.size(), 16U);
  EXPECT_EQ(HardwareFingerprint(MachineWith({0, 2})), all);
  EXPECT_EQ(HardwareFingerprint(MachineWith({0, 1})), all) << "a node without an online CPU";
  EXPECT_EQ(OfflineCpus(MachineWith({0, 2})), (CpuSet{1, 3}));
}

TEST(HardwareFingerprintTest, TellsMachinesApart) {
  const std::string all = HardwareFingerprint(MachineWith({0, 1, 2, 3}));
  EXPECT_NE(HardwareFingerprint(MachineWith({0, 1, 2, 3}, 30)), all);
}

}  // namespace
}  // namespace resmgr
