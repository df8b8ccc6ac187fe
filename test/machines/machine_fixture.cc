// SPDX-License-Identifier: Apache-2.0
#include "test/machines/machine_fixture.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/policy_text.h"

namespace resmgr::test {

using Json = nlohmann::json;

void MachineTest::OpenFixed() {
  ASSERT_GE(All().size(), 4) << "these tests need four CPUs";
  if (Policy() != "balloons") return OpenDoor(Policy());
  OpenDoorWith({.policy = "", .starts_alone = false, .config = PolicyFile(Policy())});
}

void MachineTest::OpenConfigured(const std::string& more) {
  ASSERT_GE(All().size(), 4) << "these tests need four CPUs";
  OpenDoor("", fmt::format("policy: {{Active: {}}}\n{}", Policy(), more));
}

Json MachineTest::Ctl(const Node::Words& words) {
  const StatusOr<std::string> output = node().Ctl(words);
  EXPECT_TRUE(output.ok()) << Describe(output.status()) << node().RelayLog();
  return Json::parse(output.value_or("null"), nullptr, /*allow_exceptions=*/false);
}

Status MachineTest::Configure(const std::string& text, const Node::Words& more) {
  const TempDir directory;
  const std::string file = directory.File("node.yaml");
  std::ofstream(file) << text;
  Node::Words words = {"config", "set"};
  words.insert(words.end(), more.begin(), more.end());
  words.push_back(file);
  return node().Ctl(words).status();
}

Json MachineTest::Explained(const RunningPod& pod) {
  const Json list = Ctl({"explain", pod.container_id});
  EXPECT_EQ(list.size(), 1U) << list;
  return list.empty() ? Json::object() : list.front();
}

nlohmann::json MachineTest::ProblemOf(const RunningPod& pod, const std::string& kind) {
  const std::string name = fmt::format("default/{0}/{0}", pod.workload.name);
  const nlohmann::json status = Ctl({"status"});
  for (const nlohmann::json& problem : status.value("problems", nlohmann::json::array())) {
    const nlohmann::json& objects = problem["objects"];
    if (problem["kind"] == kind && std::find(objects.begin(), objects.end(), name) != objects.end())
      return problem;
  }
  return nlohmann::json::object();
}

CpuSet MachineTest::ExclusiveOf(const RunningPod& pod) {
  return CpuSet::Parse(Explained(pod).value("exclusive", "")).value_or(CpuSet());
}

RunningPod MachineTest::Add(const RunningPod& pod, const Workload& workload) {
  RunningPod its = pod;
  const Status started = node().StartContainer(workload, &its);
  EXPECT_TRUE(started.ok()) << workload.name << ": " << Describe(started);
  return its;
}

std::string MachineTest::RefusalOf(const RunningPod& pod, const Workload& workload) {
  RunningPod its = pod;
  return std::string(Message(node().StartContainer(workload, &its)));
}

void MachineTest::End(const RunningPod& pod) {
  Status ended = node().client().StopContainer(pod.container_id);
  node().watch().Remove(pod.container_id);
  if (ended.ok()) ended = node().client().RemoveContainer(pod.container_id);
  EXPECT_TRUE(ended.ok()) << pod.workload.name << ": " << Describe(ended);
}

CpuSet MachineTest::KernelCpus(const RunningPod& pod) {
  const std::optional<CpuSet> cpus = containerd().AwaitAllowedCpus(pod.container_id);
  EXPECT_TRUE(cpus.has_value()) << pod.workload.name;
  if (!cpus) return {};
  EXPECT_EQ(*cpus, CpuSetOf(pod)) << pod.workload.name;
  return *cpus;
}

NodeSet MachineTest::NodesWithCpus(const RunningPod& pod) const {
  NodeSet with_cpus;
  for (const int id : NodeSet::Parse(MemsOf(pod)).value_or(NodeSet()))
    if (!TheMachine().FindNode(id)->cpus.empty()) with_cpus.Add(id);
  return with_cpus;
}

NodeSet MachineTest::NodesWithMemory(const CpuSet& cpus) {
  NodeSet with_memory;
  for (const int id : TheMachine().NodesOf(cpus))
    if (TheMachine().FindNode(id)->memory.value > 0) with_memory.Add(id);
  return with_memory;
}

void MachineTest::ExpectSize(const RunningPod& pod, int size) {
  const Status resized =
      WaitUntil("the resize", kPatience, [&] { return CpuSetOf(pod).size() == size; });
  EXPECT_TRUE(resized.ok()) << pod.workload.name << " is on " << CpusOf(pod);
}

void MachineTest::ExpectCompact(const CpuSet& own) {
  int room = 0;
  for (const NumaNode& numa : TheMachine().nodes())
    room = std::max(room, static_cast<int>((numa.cpus & Unreserved()).size()));
  if (static_cast<int>(own.size()) <= room) {
    EXPECT_EQ(TheMachine().NodesOf(own).size(), 1) << own.ToString();
  }
}

std::map<int, int64_t> MachineTest::MemoryByNode(const RunningPod& pod) {
  std::istringstream lines(containerd().CgroupFile(pod.container_id, "memory.numa_stat"));
  const bool v2 = lines.str().starts_with("anon");
  std::map<int, int64_t> found;
  for (std::string line; std::getline(lines, line);) {
    // "anon N0=4096 N1=0" in bytes; "anon=1 N0=1 N1=0" in pages.
    if (!line.starts_with(v2 ? "anon " : "anon=")) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      if (!word.starts_with('N') || equals == std::string::npos) continue;
      found[std::stoi(word.substr(1))] = std::stoll(word.substr(equals + 1)) * (v2 ? 1 : 4096);
    }
  }
  return found;
}

Workload MachineTest::Hungry(int cpus) {
  Workload hungry = Guaranteed("hungry", cpus);
  hungry.memory_limit = Bytes{160 * kMiB};
  // It fills its buffer and waits for a reader of its pipe, without using a CPU.
  hungry.command = {"/bin/sh", "-c", "dd if=/dev/zero bs=96M | sleep 100000"};
  return hungry;
}

void MachineTest::ExpectFull(const RunningPod& pod) {
  const Status full = WaitUntil("it uses its memory", kPatience, [&] {
    int64_t sum = 0;
    for (const auto& [numa, bytes] : MemoryByNode(pod))
      sum += bytes;
    return sum > 90 * kMiB;
  });
  EXPECT_TRUE(full.ok()) << containerd().CgroupFile(pod.container_id, "memory.numa_stat");
}

std::string NameOfMachineCase(const ::testing::TestParamInfo<std::tuple<Door, const char*>>& info) {
  std::string name = std::get<0>(info.param) == Door::kRelay ? "Relay" : "NriPlugin";
  for (const char letter : std::string(std::get<1>(info.param)))
    if (letter != '-') name += letter;
  return name;
}

}  // namespace resmgr::test
