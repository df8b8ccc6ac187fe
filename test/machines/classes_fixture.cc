// SPDX-License-Identifier: Apache-2.0
#include "test/machines/classes_fixture.h"

#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/sys/cgroups.h"

namespace resmgr::test {

namespace fs = std::filesystem;

namespace {

constexpr const char* kCgroupMount = "/sys/fs/cgroup";
constexpr const char* kWorkqueueFiles = "/sys/devices/virtual/workqueue";

void AddFile(const fs::path& path, std::map<std::string, std::string>& tree) {
  std::ifstream stream(path);
  if (!stream.good()) return;
  std::string text((std::istreambuf_iterator<char>(stream)), {});
  tree.emplace(path.string(), std::move(text));
}

}  // namespace

void MachineClassesFixture::SetUp() {
  if (!HasUnifiedCgroups()) GTEST_SKIP() << "this machine has cgroup v1";
  if (!fs::exists("/sys/fs/cgroup/init/cpuset.cpus.exclusive"))
    GTEST_SKIP() << "this kernel is older than Linux 6.7";
}

MachineClassesFixture::HostTree MachineClassesFixture::Host() {
  static const std::set<std::string> kSettings = {"cpuset.cpus",
                                                  "cpuset.cpus.exclusive",
                                                  "cpuset.cpus.partition",
                                                  "cpuset.cpus.isolated",
                                                  "cpuset.mems",
                                                  "cpu.max",
                                                  "cpu.max.burst",
                                                  "cpu.weight",
                                                  "io.max",
                                                  "io.weight",
                                                  "io.bfq.weight",
                                                  "memory.high",
                                                  "memory.low",
                                                  "memory.min",
                                                  "memory.max",
                                                  "memory.swap.max"};
  HostTree tree;
  for (const auto& entry : fs::directory_iterator("/proc/irq"))
    AddFile(entry.is_directory() ? entry.path() / "smp_affinity" : entry.path(), tree);
  for (const int cpu : All())
    AddFile(fmt::format("/sys/devices/system/cpu/cpu{}/power/pm_qos_resume_latency_us", cpu), tree);
  for (const char* const name : {"cpumask", "cpumask_isolated", "cpumask_requested"})
    AddFile(fs::path(kWorkqueueFiles) / name, tree);
  for (const auto& entry : fs::recursive_directory_iterator(kCgroupMount))
    if (kSettings.contains(entry.path().filename())) AddFile(entry.path(), tree);
  return tree;
}

std::string MachineClassesFixture::Changes(const HostTree& before, const HostTree& after) {
  std::string changes;
  for (const auto& [path, text] : before) {
    const auto now = after.find(path);
    if (now == after.end()) {
      changes += fmt::format("{} is gone\n", path);
    } else if (now->second != text) {
      changes += fmt::format("{}: {:?} became {:?}\n", path, text, now->second);
    }
  }
  return changes;
}

void MachineClassesFixture::OpenWithClasses(std::string_view classes) {
  ASSERT_GE(All().size(), 4) << "these tests need four CPUs";
  OpenDoorWith({.policy = "", .knows_pods_cgroup = true, .config = WithClasses(classes)});
}

std::string MachineClassesFixture::WithClasses(std::string_view classes) {
  return fmt::format("policy: {{Active: {}}}\n{}", Policy(), classes);
}

void MachineClassesFixture::SetClasses(std::string_view classes) {
  const Status set = Configure(WithClasses(classes));
  ASSERT_TRUE(set.ok()) << Describe(set);
}

RunningPod MachineClassesFixture::RunAnnotated(
    const Workload& workload, const std::map<std::string, std::string>& annotations) {
  RunningPod pod{
      .workload = workload, .config = node().PodConfig(workload), .pod_id = "", .container_id = ""};
  for (const auto& [key, value] : annotations)
    (*pod.config.mutable_annotations())[key] = value;
  const StatusOr<std::string> id = node().client().RunPod(pod.config);
  EXPECT_TRUE(id.ok()) << Describe(id.status());
  pod.pod_id = id.value_or("");
  if (workload.cpu_limit.value > 0)
    Put(PodDirectory(pod) + "/cpu.max", fmt::format("{} 100000", workload.cpu_limit.value * 100));
  const Status started = node().StartContainer(workload, &pod);
  EXPECT_TRUE(started.ok()) << Describe(started) << node().RelayLog();
  return pod;
}

std::string MachineClassesFixture::LineOf(const std::string& path) {
  return std::string(Trim(TextOf(path)));
}

void MachineClassesFixture::Put(const std::string& path, std::string_view text) {
  std::ofstream stream(path);
  stream << text << std::flush;
  EXPECT_TRUE(stream.good()) << path << ": " << text;
}

std::string MachineClassesFixture::Outside(const RunningPod& pod, std::string_view file) {
  return std::string(Trim(containerd().CgroupFile(pod.container_id, file)));
}

std::string MachineClassesFixture::Setting(const RunningPod& pod, std::string_view file) {
  std::string outside = Outside(pod, file);
  const auto read =
      node().runtime().Exec(pod.container_id, {"cat", fmt::format("/sys/fs/cgroup/{}", file)});
  EXPECT_TRUE(read.ok()) << Describe(read.status());
  if (read.ok()) {
    EXPECT_EQ(Trim(read->stdout()), outside) << file << read->stderr();
  }
  return outside;
}

std::string MachineClassesFixture::PodDirectory(const RunningPod& pod) {
  return kCgroupMount + pod.config.linux().cgroup_parent();
}

std::string MachineClassesFixture::PodSetting(const RunningPod& pod, std::string_view file) {
  return LineOf(fmt::format("{}/{}", PodDirectory(pod), file));
}

int MachineClassesFixture::ProcessOf(const RunningPod& pod) {
  int process = 0;
  std::ifstream(containerd().CgroupPath(pod.container_id, "cgroup.procs")) >> process;
  EXPECT_GT(process, 0) << pod.workload.name;
  return process;
}

void MachineClassesFixture::Await(std::string_view what, const std::function<bool()>& condition) {
  const Status came = WaitUntil(what, kPatience, condition);
  EXPECT_TRUE(came.ok()) << Describe(came) << Why();
}

void MachineClassesFixture::AwaitText(std::string_view what, const std::string& expected,
                                      const std::function<std::string()>& text) {
  std::string last;
  const Status came = WaitUntil(what, kPatience, [&] { return (last = text()) == expected; });
  EXPECT_EQ(last, expected) << Describe(came) << Why();
}

void MachineClassesFixture::AwaitSetting(const RunningPod& pod, std::string_view file,
                                         const std::string& expected) {
  AwaitText(file, expected, [&] { return Outside(pod, file); });
  EXPECT_EQ(Setting(pod, file), expected);
}

std::string MachineClassesFixture::Why() {
  return node().Ctl("classes").value_or("") + node().RelayLog();
}

}  // namespace resmgr::test
