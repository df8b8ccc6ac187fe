// SPDX-License-Identifier: Apache-2.0
// A container's memory lies on the nodes that the policy has chosen, also when it moves.
#include <algorithm>
#include <chrono>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/machines/machine_fixture.h"

namespace resmgr::test {
namespace {

class MachineMemoryTest : public MachineTest {
 protected:
  NodeSet NodesOf(const RunningPod& pod) {
    const StatusOr<NodeSet> nodes = NodeSet::Parse(MemsOf(pod));
    EXPECT_TRUE(nodes.ok()) << MemsOf(pod);
    return nodes.value_or(NodeSet());
  }
  // The largest amount of memory on a node outside of these.
  int64_t MostOutside(const RunningPod& pod, const NodeSet& nodes) {
    int64_t most = 0;
    for (const auto& [numa, bytes] : MemoryByNode(pod))
      if (!nodes.Contains(numa)) most = std::max(most, bytes);
    return most;
  }
};

TEST_P(MachineMemoryTest, AContainersMemoryLiesOnItsNodes) {
  ASSERT_NO_FATAL_FAILURE(OpenFixed());
  const RunningPod pod = Run(Hungry(1));
  const NodeSet nodes = NodesOf(pod);
  ASSERT_LT(nodes.size(), TheMachine().nodes().size()) << MemsOf(pod);
  ExpectFull(pod);
  EXPECT_LT(MostOutside(pod, nodes), kMiB);
}

// The container's CPUs are removed from those that policies may use.
TEST_P(MachineMemoryTest, AContainerThatMovesTakesItsMemoryAlongOrSaysWhatStays) {
  ASSERT_NO_FATAL_FAILURE(OpenConfigured(""));
  // The container wants as many CPUs as a node has, so it is not on the node of the reserved one.
  const int size = static_cast<int>(TheMachine().nodes().front().cpus.size());
  const RunningPod pod = Run(Hungry(size));
  const CpuSet own = KernelCpus(pod);
  const NodeSet nodes = NodesOf(pod);
  ASSERT_EQ(nodes.size(), 1) << MemsOf(pod);
  ExpectFull(pod);
  EXPECT_LT(MostOutside(pod, nodes), kMiB);
  const Status set =
      Configure(fmt::format("policy: {{Active: {}, AvailableResources: {{CPU: 'cpuset:{}'}}}}\n",
                            Policy(), (All() - own).ToString()));
  ASSERT_TRUE(set.ok()) << Describe(set);
  EXPECT_FALSE(KernelCpus(pod).Intersects(own));
  const NodeSet moved = NodesOf(pod);
  EXPECT_FALSE(moved.Intersects(nodes)) << MemsOf(pod);
  const bool v1 = containerd().CgroupFile(pod.container_id, "memory.max").empty();
  const Status along = WaitUntil("its memory follows", std::chrono::seconds(v1 ? 1 : 60),
                                 [&] { return MostOutside(pod, moved) < kMiB; });
  const std::string explained = Explained(pod).dump();
  EXPECT_TRUE(along.ok() || explained.find("stays") != std::string::npos)
      << containerd().CgroupFile(pod.container_id, "memory.numa_stat") << explained;
}

// The other policies do not choose memory nodes.
INSTANTIATE_TEST_SUITE_P(Containerd, MachineMemoryTest,
                         ::testing::Combine(::testing::Values(Door::kRelay, Door::kNriPlugin),
                                            ::testing::Values("topology-aware")),
                         NameOfMachineCase);

}  // namespace
}  // namespace resmgr::test
