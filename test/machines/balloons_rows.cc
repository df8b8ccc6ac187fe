// SPDX-License-Identifier: Apache-2.0
#include "test/machines/balloons_rows.h"

#include <chrono>
#include <sstream>

#include <fmt/format.h>

namespace resmgr::test {
namespace {

// The wait for updates of containers under way.
constexpr std::chrono::seconds kSettled{20};

std::string FileOf(const std::string& section) {
  std::string file = "policy:\n  Active: balloons\n  balloons:\n";
  std::istringstream lines(section);
  for (std::string line; std::getline(lines, line);)
    file += "    " + line + '\n';
  return file;
}

}  // namespace

bool Apart(const CpuSet& a, const CpuSet& b) {
  return !a.Intersects(b);
}

std::string Key(const std::string& name, const std::string& container) {
  const std::string key = name + ".resource-policy.nri.io";
  return container.empty() ? key : key + "/container." + container;
}

Workload Asks(const std::string& name, int64_t request) {
  return Burstable(name, MilliCpu{request});
}

Workload In(const std::string& namespace_name, Workload workload) {
  workload.namespace_name = namespace_name;
  return workload;
}

void BalloonsRowsTest::SetUp() {
  if (All().size() != 16 || TheMachine().nodes().size() != 4 || TheMachine().cores().size() != 8)
    GTEST_SKIP() << "the rows are about another machine";
}

void BalloonsRowsTest::OpenWith(const std::string& section) {
  OpenDoorWith({.policy = "", .reserved = "", .starts_alone = false, .config = FileOf(section)});
}

Status BalloonsRowsTest::Change(const std::string& section) {
  return Configure(FileOf(section));
}

RunningPod BalloonsRowsTest::RunAs(const Workload& workload, const Texts& annotations,
                                   const Texts& labels) {
  RunningPod pod{
      .workload = workload, .config = node().PodConfig(workload), .pod_id = {}, .container_id = {}};
  for (const auto& [key, value] : annotations)
    (*pod.config.mutable_annotations())[key] = value;
  for (const auto& [key, value] : labels)
    (*pod.config.mutable_labels())[key] = value;
  const StatusOr<std::string> id = node().client().RunPod(pod.config);
  EXPECT_TRUE(id.ok()) << workload.name << ": " << Describe(id.status());
  pod.pod_id = id.value_or("");
  return Add(pod, workload);
}

RunningPod BalloonsRowsTest::RunOf(const std::string& type, const Workload& workload) {
  return RunAs(workload, {{Key("balloon.balloons"), type}});
}

CpuSet BalloonsRowsTest::On(const RunningPod& pod, int size) {
  if (pod.container_id.empty()) return {};
  const Status settled = WaitUntil("its CPUs and memory", kSettled, [&] {
    const CpuSet cpus = CpuSet::Parse(CpusOf(pod)).value_or(CpuSet());
    return cpus.size() == size && MemsOf(pod) == TheMachine().NodesOf(cpus).ToString();
  });
  EXPECT_TRUE(settled.ok()) << pod.workload.name << " is on " << CpusOf(pod) << ", not on " << size
                            << " CPUs, with memory nodes " << MemsOf(pod);
  return KernelCpus(pod);
}

BalloonsRowsTest::Texts BalloonsRowsTest::Balloons() {
  Texts balloons;
  for (const nlohmann::json& pool : Ctl({"pools"})) {
    const std::string name = pool.value("name", "");
    balloons[name] = name;
    for (const nlohmann::json& container : pool["containers"])
      balloons[container.get<std::string>()] = name;
  }
  return balloons;
}

int BalloonsRowsTest::InNode(const CpuSet& cpus, int node) {
  return cpus.CountCommon(TheMachine().FindNode(node)->cpus);
}

INSTANTIATE_TEST_SUITE_P(Containerd, BalloonsRowsTest,
                         ::testing::Combine(::testing::Values(Door::kRelay),
                                            ::testing::Values("balloons")),
                         NameOfMachineCase);

}  // namespace resmgr::test
