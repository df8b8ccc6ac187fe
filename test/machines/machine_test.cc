// SPDX-License-Identifier: Apache-2.0
// Real containers on the machine that this runs on, which scripts/test-machines emulates in many
// shapes: the kernel runs them where the policy has decided, their memory lies on their nodes, and
// nothing moves them.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/sys/temp_dir.h"
#include "pkg/topology/machine_source.h"
#include "test/e2e/front_doors.h"
#include "test/e2e/node_fixture.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMiB = int64_t{1} << 20;

class MachineTest : public NodeTest,
                    public ::testing::WithParamInterface<std::tuple<Door, const char*>> {
 protected:
  static bool IsPlugin() { return std::get<0>(GetParam()) == Door::kNriPlugin; }
  static std::string Policy() { return std::get<1>(GetParam()); }

  void SetUp() override {
    if (All().size() < 4) GTEST_SKIP() << "this machine has only " << All().size() << " CPUs";
    if (IsPlugin() && !HasNri()) GTEST_SKIP() << "this containerd has no NRI";
    Open({.relayed = !IsPlugin(), .nri_plugin = IsPlugin(), .policy = Policy()});
    if (HasFatalFailure()) return;
    if (IsPlugin()) ASSERT_TRUE(node().RelayLogs("synchronized: "));
    RecordProperty("cpus", All().ToString());
  }

  // "containerd github.com/containerd/containerd 1.6.20~ds1 ..."
  static bool HasNri() {
    const TempDir directory;
    const std::string output = directory.File("version");
    return RunProgram({"containerd", "--version"}, output, kPatience).ok() &&
           TextOf(output).find(" 1.6.") == std::string::npos;
  }

  Json Ctl(const Node::Words& words) {
    const StatusOr<std::string> output = node().Ctl(words);
    EXPECT_TRUE(output.ok()) << Describe(output.status()) << node().RelayLog();
    return Json::parse(output.value_or("null"), nullptr, /*allow_exceptions=*/false);
  }

  // The kernel's word for where the container's process runs, which has to be the cgroup's.
  CpuSet KernelCpus(const RunningPod& pod) {
    const std::optional<CpuSet> cpus = containerd().AwaitAllowedCpus(pod.container_id);
    EXPECT_TRUE(cpus.has_value()) << pod.workload.name;
    if (!cpus) return {};
    EXPECT_EQ(*cpus, CpuSetOf(pod)) << pod.workload.name;
    return *cpus;
  }
  // The memory nodes that have memory beside these CPUs.
  static NodeSet NodesWithMemory(const CpuSet& cpus) {
    NodeSet with_memory;
    for (const int id : TheMachine().NodesOf(cpus))
      if (TheMachine().FindNode(id)->memory.value > 0) with_memory.Add(id);
    return with_memory;
  }
  // Waits: shared containers leave a CPU before a container that runs gets it.
  void ExpectSize(const RunningPod& pod, int size) {
    const Status resized =
        WaitUntil("the resize", kPatience, [&] { return CpuSetOf(pod).size() == size; });
    EXPECT_TRUE(resized.ok()) << pod.workload.name << " is on " << CpusOf(pod);
  }
  // One NUMA node, if one has room for it.
  void ExpectCompact(const CpuSet& own) {
    size_t room = 0;
    for (const NumaNode& numa : TheMachine().nodes())
      room = std::max(room, static_cast<size_t>((numa.cpus & Unreserved()).size()));
    if (static_cast<size_t>(own.size()) <= room) {
      EXPECT_EQ(TheMachine().NodesOf(own).size(), 1) << own.ToString();
    }
  }
  // Bytes of the container's memory on each node, as the kernel counts them.
  std::vector<std::pair<int, int64_t>> MemoryByNode(const RunningPod& pod) {
    std::istringstream lines(containerd().CgroupFile(pod.container_id, "memory.numa_stat"));
    const bool v2 = lines.str().starts_with("anon");
    std::vector<std::pair<int, int64_t>> found;
    for (std::string line; std::getline(lines, line);) {
      // "anon N0=4096 N1=0" in bytes; "anon=1 N0=1 N1=0" in pages.
      if (!line.starts_with(v2 ? "anon " : "anon=")) continue;
      std::istringstream words(line);
      for (std::string word; words >> word;) {
        const size_t equals = word.find('=');
        if (!word.starts_with('N') || equals == std::string::npos) continue;
        found.emplace_back(std::stoi(word.substr(1)),
                           std::stoll(word.substr(equals + 1)) * (v2 ? 1 : 4096));
      }
    }
    return found;
  }
};

TEST_P(MachineTest, ContainersRunWhereThePolicySaysAndNothingMovesThem) {
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  RunningPod exclusive = Run(Guaranteed("exclusive", 2));
  const CpuSet own = KernelCpus(exclusive);
  ASSERT_EQ(own.size(), 2);
  ExpectCompact(own);
  EXPECT_FALSE(own.Contains(0)) << "it is reserved";
  EXPECT_FALSE(KernelCpus(shared).Intersects(own));
  if (Policy() == "topology-aware") {
    EXPECT_EQ(MemsOf(exclusive), NodesWithMemory(own).ToString());
  }

  // Grows, keeps its CPUs, and gives back what it no longer asks for.
  if (All().size() > 5) {
    Resize(Guaranteed("exclusive", 3), &exclusive);
    node().Watch(exclusive);
    ExpectSize(exclusive, 3);
    EXPECT_TRUE(own.IsSubsetOf(CpuSetOf(exclusive))) << CpusOf(exclusive);
    Resize(Guaranteed("exclusive", 2), &exclusive);
    node().Watch(exclusive);
    ExpectSize(exclusive, 2);
  }
  EXPECT_FALSE(node().Run(Guaranteed("too-large", All().size())).ok()) << "CPU 0 is reserved";

  // Restarts of the daemon and of the runtime.
  const auto places = PlacesOf(shared, exclusive);
  node().relay().Kill();
  ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
  const RunningPod late = Run(BestEffort("late"));
  EXPECT_FALSE(KernelCpus(late).Intersects(CpuSetOf(exclusive)));
  EXPECT_EQ(PlacesOf(shared, exclusive), places);
  ASSERT_TRUE(node().RestartContainerd().ok()) << containerd().Log();
  ASSERT_TRUE(WaitUntil("the runtime is back", kPatience, [&] {
                cri::VersionResponse version;
                return node().client().Unary("Version", cri::VersionRequest(), &version).ok();
              }).ok());
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

  Remove(late);
  EXPECT_EQ(Ctl({"uninstall", "-apply"})["done"], true);
  for (const RunningPod& pod : {shared, exclusive, later})
    EXPECT_EQ(KernelCpus(pod), All()) << pod.workload.name;
}

// No CPU can be for one container alone, and the others still run.
TEST(OneCpuTest, ContainersShareTheOnlyCpu) {
  const auto machine = LoadMachine("live");
  ASSERT_TRUE(machine.ok());
  if (machine->allowed().size() > 1) GTEST_SKIP() << "this machine has more CPUs";
  auto node = Node::OnContainerd({.policy = "topology-aware", .reserved = ""});
  ASSERT_TRUE(node.ok()) << Describe(node.status());
  const auto shared = (*node)->Run(Burstable("shared", MilliCpu{300}));
  ASSERT_TRUE(shared.ok()) << Describe(shared.status());
  const auto idle = (*node)->Run(BestEffort("idle"));
  ASSERT_TRUE(idle.ok()) << Describe(idle.status());
  EXPECT_FALSE((*node)->Run(Guaranteed("too-large", 2)).ok());
  (*node)->relay().Kill();
  ASSERT_TRUE((*node)->StartRelay().ok());
  EXPECT_TRUE((*node)->Run(BestEffort("late")).ok());
  EXPECT_EQ((*node)->containerd().AllowedCpus(shared->container_id), machine->allowed());
}

class MemoryTest : public MachineTest {};

TEST_P(MemoryTest, AContainersMemoryLiesOnItsNodes) {
  if (TheMachine().nodes().size() < 2) GTEST_SKIP() << "this machine has one node";
  Workload hungry = Guaranteed("hungry", 1);
  hungry.memory_limit = Bytes{160 * kMiB};
  hungry.command = {"/bin/sh", "-c", "exec dd if=/dev/zero of=/dev/null bs=96M"};
  const RunningPod pod = Run(hungry);
  const StatusOr<NodeSet> mems = NodeSet::Parse(MemsOf(pod));
  ASSERT_TRUE(mems.ok());
  ASSERT_LT(mems->size(), static_cast<int>(TheMachine().nodes().size())) << MemsOf(pod);
  const Status full = WaitUntil("it uses its memory", kPatience, [&] {
    int64_t sum = 0;
    for (const auto& [numa, bytes] : MemoryByNode(pod))
      sum += bytes;
    return sum > 90 * kMiB;
  });
  ASSERT_TRUE(full.ok()) << full << containerd().CgroupFile(pod.container_id, "memory.numa_stat");
  for (const auto& [numa, bytes] : MemoryByNode(pod)) {
    if (!mems->Contains(numa)) EXPECT_LT(bytes, kMiB) << "on node " << numa;
  }
}

std::string NameOfCase(const ::testing::TestParamInfo<MachineTest::ParamType>& info) {
  std::string name = std::get<0>(info.param) == Door::kRelay ? "Relay" : "NriPlugin";
  for (const char letter : std::string(std::get<1>(info.param)))
    if (letter != '-') name += letter;
  return name;
}

constexpr auto kDoors = {Door::kRelay, Door::kNriPlugin};
INSTANTIATE_TEST_SUITE_P(Containerd, MachineTest,
                         ::testing::Combine(::testing::ValuesIn(kDoors),
                                            ::testing::Values("static", "static-plus",
                                                              "topology-aware")),
                         NameOfCase);
// The other policies do not choose memory nodes.
INSTANTIATE_TEST_SUITE_P(Containerd, MemoryTest,
                         ::testing::Combine(::testing::ValuesIn(kDoors),
                                            ::testing::Values("topology-aware")),
                         NameOfCase);

}  // namespace
}  // namespace resmgr::test
