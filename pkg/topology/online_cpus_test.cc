// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/online_cpus.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using ::testing::HasSubstr;

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
