// SPDX-License-Identifier: Apache-2.0
// Real containers on the machine that this runs on, which scripts/test-machines emulates in many
// shapes: the kernel runs them where the policy has decided, their memory lies on their nodes, and
// nothing moves them.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/topology/machine_source.h"
#include "test/machines/machine_fixture.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

class MachinePlacesTest : public MachineTest {
 protected:
  // One CPU more than is free is refused, and changes nothing.
  void ExpectRefusedAtTheEdge(const RunningPod& shared, const RunningPod& exclusive) {
    const int free = FreeBeside(exclusive);
    const auto places = PlacesOf(shared, exclusive);
    const std::string message = RefusalOf(exclusive, Guaranteed("too-large", free + 1));
    EXPECT_THAT(message, HasSubstr(fmt::format("cri-resmgr ({}): ", Policy())));
    const bool balloons = Policy() == "balloons";
    EXPECT_THAT(message, HasSubstr(balloons ? fmt::format("{} CPUs needed", free + 1)
                                            : fmt::format("needs {}", free + 1)));
    EXPECT_THAT(message, HasSubstr(balloons ? "idle" : "free"));
    EXPECT_EQ(PlacesOf(shared, exclusive), places);
  }
  // The largest pod that the scheduler may send fits, and its removal restores the state before.
  void ExpectTheLargestFits(const RunningPod& shared, const RunningPod& exclusive) {
    const CpuSet shares = CpuSetOf(shared);
    // The shared container asks for a part of a CPU. Isolated CPUs serve single requests.
    const int size = TheMachine().isolated().empty() ? FreeBeside(exclusive) - 1 : 1;
    const RunningPod largest = Add(exclusive, Guaranteed("largest", size));
    EXPECT_EQ(KernelCpus(largest).size(), size);
    EXPECT_FALSE(KernelCpus(largest).Intersects(CpuSetOf(exclusive)));
    End(largest);
    ExpectOn(shared, shares);
  }

 private:
  int FreeBeside(const RunningPod& exclusive) const {
    return static_cast<int>((Unreserved() - CpuSetOf(exclusive)).size());
  }
};

// Changes while containers run, with files in the containers that tell their CPUs.
class MachineChangesTest : public MachineTest {
 protected:
  static constexpr const char* kFiles = "cpuFiles: {Containers: all}\n";

  void ExpectCpuFile(const RunningPod& pod, const CpuSet& exclusive) {
    std::string expected;
    const Status told = WaitUntil("the file follows", kPatience, [&] {
      expected = CpuFileOf(CpuSetOf(pod), exclusive, MemsOf(pod));
      return CpuFile(pod) == expected;
    });
    EXPECT_TRUE(told.ok()) << CpuFile(pod) << "in place of " << expected;
  }
  static std::string NextPolicy() {
    if (Policy() == "static") return "static-plus";
    return Policy() == "static-plus" ? "topology-aware" : "static";
  }
};

TEST_P(MachinePlacesTest, ContainersRunWhereThePolicySaysAndNothingMovesThem) {
  ASSERT_NO_FATAL_FAILURE(OpenFixed());
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  const CpuSet whole = CpuSetOf(shared);
  RunningPod exclusive = Run(Guaranteed("exclusive", 2));
  const CpuSet own = KernelCpus(exclusive);
  ASSERT_EQ(own.size(), 2);
  ExpectCompact(own);
  EXPECT_FALSE(own.Contains(0)) << "it is reserved";
  // A start waits for others to leave exclusive CPUs, but not those of a new balloon.
  if (Policy() == "balloons") ExpectOn(shared, whole - own);
  EXPECT_FALSE(KernelCpus(shared).Intersects(own));
  if (Policy() == "topology-aware") {
    EXPECT_EQ(NodesWithCpus(exclusive), NodesWithMemory(own));
  }

  const CpuSet both = CpuSetOf(shared) | own;

  // Grows, keeps its CPUs, and gives back what it no longer asks for.
  if (All().size() > 5) {
    Resize(Guaranteed("exclusive", 3), &exclusive);
    node().Watch(exclusive);
    ExpectSize(exclusive, 3);
    EXPECT_TRUE(own.IsSubsetOf(CpuSetOf(exclusive))) << CpusOf(exclusive);
    Resize(Guaranteed("exclusive", 2), &exclusive);
    node().Watch(exclusive);
    ExpectSize(exclusive, 2);
    ExpectOn(shared, both - CpuSetOf(exclusive));
  }
  ExpectRefusedAtTheEdge(shared, exclusive);

  // Restarts of the daemon and of the runtime.
  const auto places = PlacesOf(shared, exclusive);
  RestartDaemon(SIGKILL);
  ExpectTheLargestFits(shared, exclusive);
  EXPECT_EQ(PlacesOf(shared, exclusive), places);
  RestartContainerd();
  ExpectServing();
  const RunningPod later = Run(BestEffort("later"));
  EXPECT_FALSE(KernelCpus(later).Intersects(CpuSetOf(exclusive)));
  EXPECT_EQ(PlacesOf(shared, exclusive), places);

  // Another program's write is found and mended.
  node().watch().Remove(exclusive.container_id);
  const CpuSet before = CpuSetOf(exclusive);
  std::ofstream(containerd().CgroupPath(exclusive.container_id, "cpuset.cpus")) << All().ToString();
  const Json report = Ctl({"audit", "-repair"});
  EXPECT_EQ(report["drifted"], 1) << report;
  ExpectOn(exclusive, before);
  EXPECT_EQ(Ctl({"audit"})["drifted"], 0);

  // Others get the CPUs that it gives back.
  Remove(exclusive);
  ExpectOn(shared, whole);
  EXPECT_EQ(Ctl({"uninstall", "-apply"})["done"], true);
  for (const RunningPod& pod : {shared, later})
    EXPECT_EQ(KernelCpus(pod), All()) << pod.workload.name;
}

// No CPU can be for one container alone, and the others still run.
TEST(OneCpuTest, ContainersShareTheOnlyCpu) {
  const auto machine = Must(LoadMachine("live"));
  if (machine.allowed().size() > 1) GTEST_SKIP() << "this machine has more CPUs";
  auto node = Must(Node::OnContainerd({.policy = "topology-aware", .reserved = ""}));
  const auto shared = Must(node->Run(Burstable("shared", MilliCpu{300})));
  Must(node->Run(BestEffort("idle")));
  EXPECT_FALSE(node->Run(Guaranteed("too-large", 2)).ok());
  node->relay().Kill();
  ASSERT_TRUE(node->StartRelay().ok());
  EXPECT_TRUE(node->Run(BestEffort("late")).ok());
  EXPECT_EQ(node->containerd().AllowedCpus(shared.container_id), machine.allowed());
}

TEST_P(MachineChangesTest, ContainersOfEachKindKeepTheirCpusWhileWhatServesThemChanges) {
  ASSERT_NO_FATAL_FAILURE(OpenConfigured(kFiles));
  Workload for_system = Burstable("system", MilliCpu{100});
  for_system.namespace_name = "kube-system";
  const RunningPod system = Run(for_system);
  const RunningPod exclusive = Run(Guaranteed("exclusive", 2));
  const RunningPod mixed = Add(exclusive, Sized("mixed", MilliCpu{1500}));
  const CpuSet own = KernelCpus(exclusive);
  EXPECT_EQ(ExclusiveOf(exclusive), own);
  const CpuSet part = ExclusiveOf(mixed);
  EXPECT_EQ(part.size(), Policy() == "static" ? 0 : 1);
  EXPECT_GT(KernelCpus(mixed).size(), part.size()) << "it shares CPUs for its fraction";
  EXPECT_FALSE(KernelCpus(mixed).Intersects(own));
  EXPECT_EQ(KernelCpus(system), Policy() == "static" ? All() - own : CpuSet{0});
  ExpectCpuFile(exclusive, own);
  ExpectCpuFile(mixed, part);
  ExpectCpuFile(system, {});

  // Another daemon in the place of this one; a plugin has no socket to hand over.
  const auto places = PlacesOf(system, exclusive, mixed);
  if (IsPlugin()) {
    RestartDaemon(SIGTERM);
  } else {
    const Status taken = node().TakeOver();
    ASSERT_TRUE(taken.ok()) << Describe(taken) << node().RelayLog();
  }
  EXPECT_EQ(PlacesOf(system, exclusive, mixed), places);

  // Another policy takes over the running containers; it takes CPUs away only when forced.
  const std::string next = fmt::format("policy: {{Active: {}}}\n{}", NextPolicy(), kFiles);
  Status set = Configure(next);
  if (NextPolicy() == "static") {
    EXPECT_THAT(Describe(set),
                HasSubstr("containers would lose exclusive CPUs: default/exclusive/mixed"));
    EXPECT_EQ(PlacesOf(system, exclusive, mixed), places);
    set = Configure(next, {"-force"});
  }
  ASSERT_TRUE(set.ok()) << Describe(set);
  EXPECT_EQ(Explained(exclusive)["policy"], NextPolicy());
  EXPECT_EQ(KernelCpus(exclusive), own);
  ExpectCpuFile(exclusive, own);
  if (NextPolicy() != "static") ExpectOn(system, CpuSet{0});
  ExpectCpuFile(system, {});
  EXPECT_FALSE(CpuSetOf(mixed).Intersects(own));
  ExpectCpuFile(mixed, ExclusiveOf(mixed));
  End(mixed);
  Remove(exclusive);
  const RunningPod late = Run(Guaranteed("late", 2));
  EXPECT_EQ(KernelCpus(late).size(), 2);
}

INSTANTIATE_TEST_SUITE_P(Containerd, MachinePlacesTest,
                         ::testing::Combine(::testing::ValuesIn(kDoors),
                                            ::testing::ValuesIn(kAllPolicies)),
                         NameOfMachineCase);
INSTANTIATE_TEST_SUITE_P(Containerd, MachineChangesTest,
                         ::testing::Combine(::testing::ValuesIn(kDoors),
                                            ::testing::ValuesIn(kPolicies)),
                         NameOfMachineCase);

// A container's memory lies on the nodes that the policy has chosen, also when it moves.
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
