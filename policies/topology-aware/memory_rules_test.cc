// SPDX-License-Identifier: Apache-2.0
// How the memory of a machine decides between pools.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/policy/testing/test_snapshot.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using enum QosClass;

// Two packages of eight CPUs with so many GiB.
Machine TwoPackages(const std::vector<int>& gibibytes) {
  const Machine machine = test::MakeMachine({.packages = 2, .cores = 8});
  Machine::Parts parts{
      .cpus = machine.cpus(), .nodes = machine.nodes(), .allowed = machine.allowed()};
  for (size_t i = 0; i < parts.nodes.size(); ++i)
    parts.nodes[i].memory = Bytes{int64_t{gibibytes[i]} << 30};
  return test::MakeMachine(std::move(parts));
}

class MemoryNode {
 public:
  explicit MemoryNode(Machine machine) : machine_(std::move(machine)) {
    StatusOr<std::unique_ptr<Policy>> policy = TopologyAwarePolicy::Create(
        {.machine = machine_, .available = machine_.online(), .reserved = {}});
    EXPECT_TRUE(policy.ok()) << policy.status();
    policy_ = *std::move(policy);
  }

  // Runs a container; returns its pool and its memory nodes.
  std::string Run(QosClass qos, int64_t milli_cpu, int64_t memory_limit,
                  std::string_view memory_type = "") {
    Container& container = snapshot_.Add("c", qos, milli_cpu);
    container.requirements.cpu_limit = MilliCpu{qos == kGuaranteed ? milli_cpu : 0};
    container.requirements.memory_request = Bytes{int64_t{1} << 30};
    container.requirements.memory_limit = Bytes{memory_limit << 30};
    Pod& pod = snapshot_.PodOf(container.key);
    if (!memory_type.empty()) {
      pod.annotations.Set("memory-type.resource-policy.nri.io", std::string(memory_type));
    }
    const StatusOr<Plan> plan = policy_->Allocate(snapshot_, pod, container, nullptr);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return "";
    snapshot_.Apply(*plan);
    const Placement& placement = container.placement;
    return placement.pool + ": " + placement.mems.value_or(NodeSet()).ToString();
  }

 private:
  const Machine machine_;
  std::unique_ptr<Policy> policy_;
  test::TestSnapshot snapshot_;
};

TEST(MemoryRulesTest, APackageWithMemoryComesBeforeOneWithout) {
  MemoryNode node(TwoPackages({0, 64}));
  EXPECT_EQ(node.Run(kGuaranteed, 4000, 1), "socket #1: 1");
  EXPECT_EQ(node.Run(kBurstable, 1000, 1), "socket #1: 1");
  EXPECT_EQ(node.Run(kGuaranteed, 3000, 1), "socket #1: 1");
  EXPECT_EQ(node.Run(kGuaranteed, 4000, 1), "root: 1") << "there is no more room";
}

TEST(MemoryRulesTest, CachesOfANodeWithMemoryComeBeforeThoseOfOneWithout) {
  const Machine machine = test::MakeMachine({.packages = 2, .l3s = 2, .cores = 4});
  Machine::Parts parts{
      .cpus = machine.cpus(), .nodes = machine.nodes(), .allowed = machine.allowed()};
  parts.nodes[0].memory = Bytes{0};
  MemoryNode node(test::MakeMachine(std::move(parts)));
  EXPECT_EQ(node.Run(kGuaranteed, 2000, 1), "L3 cache #2: 1");
  EXPECT_EQ(node.Run(kGuaranteed, 1000, 1), "L3 cache #3: 1");
}

TEST(MemoryRulesTest, ALargerLimitGetsNoLessMemory) {
  int fewest = 0;
  for (const int64_t limit : {1, 14, 16, 20, 40, 1000}) {
    MemoryNode node(TwoPackages({15, 15}));
    const bool both = node.Run(kBurstable, 1000, limit).ends_with("0-1");
    EXPECT_GE(both ? 2 : 1, fewest) << limit;
    fewest = both ? 2 : 1;
  }
  EXPECT_EQ(fewest, 2);
  MemoryNode uneven(TwoPackages({32, 16}));
  EXPECT_EQ(uneven.Run(kGuaranteed, 5000, 1), "socket #0: 0");
  EXPECT_EQ(uneven.Run(kBurstable, 1000, 20), "socket #0: 0") << "more is left there";
}

// Node 3 lies beside node 0, though its number and missing distances would give it to node 1.
TEST(MemoryRulesTest, AMemoryOnlyNodeIsOfThePackageThatItLiesIn) {
  Machine::Parts parts = test::PartsOf(test::MakeMachine({.packages = 2, .cores = 4}).cpus());
  for (NumaNode& node : parts.nodes)
    node.memory = Bytes{int64_t{8} << 30};
  for (const int id : {2, 3}) {
    NumaNode node{.id = id, .memory = Bytes{int64_t{4} << 30}, .type = MemoryType::kHbm};
    node.near = test::Cpus(id == 2 ? "4-7" : "0-3");
    parts.nodes.push_back(std::move(node));
  }
  const Machine machine = test::MakeMachine(std::move(parts));
  const PoolTree tree(machine, machine.online(), {});
  EXPECT_EQ(tree.OwnerOf(3), tree.Find("socket #0"));
  EXPECT_EQ(tree.OwnerOf(2), tree.Find("socket #1"));
  MemoryNode node(machine);
  EXPECT_EQ(node.Run(kGuaranteed, 2000, 1, "hbm"), "socket #0: 3");
}

// The package's own nodes have no memory.
TEST(MemoryRulesTest, AMemoryOnlyNodeWithoutAnOrdinaryOneBesideItIsOfItsCpusAllTheSame) {
  Machine::Parts parts = test::PartsOf(test::MakeMachine({.packages = 2, .cores = 2}).cpus());
  for (int id = 0; id < 2; ++id) {
    NumaNode node{.id = 2 + id, .memory = Bytes{int64_t{1} << 30}, .type = MemoryType::kHbm};
    node.near = test::Cpus(id == 0 ? "2-3" : "0-1");
    parts.nodes[IndexOf(id)].memory = Bytes{0};
    parts.nodes.push_back(std::move(node));
  }
  const Machine machine = test::MakeMachine(std::move(parts));
  const PoolTree tree(machine, machine.online(), {});
  EXPECT_EQ(tree.OwnerOf(2), tree.Find("socket #1"));
  EXPECT_EQ(tree.OwnerOf(3), tree.Find("socket #0"));
}

}  // namespace
}  // namespace resmgr
