// SPDX-License-Identifier: Apache-2.0
// Containers on isolated CPUs that grow and shrink, and their places after a restart.
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "pkg/state/testing/crashing_file_system.h"
#include "test/integration/brain/topology_aware_node.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

const StringMap kPrefersIsolated = {{"prefer-isolated-cpus.resource-policy.nri.io", "true"}};

// Two packages of eight CPUs without siblings; CPU 0 is reserved.
Machine TwoPackages(std::string_view isolated) {
  Machine machine = MakeMachine({.packages = 2, .cores = 8});
  Machine::Parts parts{
      .cpus = machine.cpus(), .nodes = machine.nodes(), .allowed = machine.allowed()};
  for (Cpu& cpu : parts.cpus)
    cpu.isolated = Cpus(isolated).Contains(cpu.id);
  return MakeMachine(std::move(parts));
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
