// SPDX-License-Identifier: Apache-2.0
// Classes with real containers on a real kernel: what the kernel has in force before, while and
// after containers have them, as a program in the container and the kernel itself tell it.
#include <chrono>
#include <csignal>
#include <iostream>
#include <random>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pkg/classes/cpu_mask.h"
#include "test/machines/classes_fixture.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kUndisturbed = R"(
classes:
  isolation: {Partition: isolated, Interrupts: isolate, Workqueues: isolate, Quota: lift, MaxLatency: 10us}
  AllowedNamespaces: {isolation: [default]}
)";
constexpr const char* kRootPartition = "isolation.resource-policy.nri.io/pod";
constexpr const char* kRequestedMask = "/sys/devices/virtual/workqueue/cpumask_requested";

class MachineClassesTest : public MachineClassesFixture {
 protected:
  static CpuSet MaskOf(const std::string& path) {
    return ParseCpuMask(LineOf(path)).value_or(CpuSet());
  }
  // Every interrupt whose affinity can be written, and those that come later.
  static CpuSet CpusOfInterrupts(const HostTree& host) {
    CpuSet cpus;
    for (const auto& [path, text] : host) {
      if (!path.starts_with("/proc/irq/") || path == "/proc/irq/0/smp_affinity" ||
          path == "/proc/irq/2/smp_affinity")
        continue;  // the timer and the cascade, which nothing moves
      cpus |= ParseCpuMask(text).value_or(CpuSet());
    }
    return cpus;
  }
  static CpuSet Isolated() {
    return CpuSet::Parse(LineOf("/sys/fs/cgroup/cpuset.cpus.isolated")).value_or(CpuSet());
  }
  static std::string LatencyOf(int cpu) {
    return LineOf(fmt::format("/sys/devices/system/cpu/cpu{}/power/pm_qos_resume_latency_us", cpu));
  }
  void ExpectUndisturbed(const RunningPod& pod, const std::string& partition) {
    const CpuSet own = ExclusiveOf(pod);
    ASSERT_FALSE(own.empty());
    AwaitSetting(pod, "cpuset.cpus.partition", partition);
    EXPECT_EQ(Setting(pod, "cpuset.cpus.effective"), own.ToString());
    EXPECT_EQ(Isolated().Intersects(own), partition == "isolated");
    EXPECT_EQ(KernelCpus(pod), own);
    EXPECT_EQ(Inside(pod), own);
    ExpectWithoutInterrupts(own);
    EXPECT_EQ(Setting(pod, "cpu.max"), "max 100000");
    EXPECT_EQ(PodSetting(pod, "cpu.max"), "max 100000");
  }
  void ExpectWithoutInterrupts(const CpuSet& own) {
    Await("interrupts elsewhere", [&] { return !CpusOfInterrupts(Host()).Intersects(own); });
    Await("workqueues elsewhere", [&] { return !MaskOf(kRequestedMask).Intersects(own); });
    for (const int cpu : own)
      EXPECT_EQ(LatencyOf(cpu), "10") << cpu;
  }
  // The console is a device whose interrupts each line of the log causes.
  static CpuSet ConsoleRunsOn() {
    std::cout << fmt::format("interrupts of the console: {:60}", "") << std::endl;
    return CpuSet::Parse(LineOf("/proc/irq/4/effective_affinity_list")).value_or(CpuSet());
  }
};

TEST_P(MachineClassesTest, CpusAreUndisturbedAndEverythingIsGivenBack) {
  const HostTree before = Host();
  ASSERT_NO_FATAL_FAILURE(OpenWithClasses(""));
  const RunningPod shared = Run(Burstable("shared", MilliCpu{200}));
  const RunningPod first = RunAnnotated(Guaranteed("first", 2));
  const HostTree plain = Host();
  EXPECT_EQ(Setting(first, "cpuset.cpus.partition"), "member");
  EXPECT_EQ(PodSetting(first, "cpu.max"), "200000 100000");

  // Under a container that runs, and for one that is created.
  SetClasses(kUndisturbed);
  ExpectUndisturbed(first, "isolated");
  const CpuSet own = CpuSetOf(first);
  Await("the console elsewhere", [&] { return !ConsoleRunsOn().Intersects(own); });
  const RunningPod second =
      RunAnnotated(Guaranteed("second", 1), {{kRootPartition, "{Partition: root}"}});
  ExpectUndisturbed(second, "root");
  const CpuSet seconds = CpuSetOf(second);
  EXPECT_FALSE(KernelCpus(shared).Intersects(own | seconds));

  // Nothing changes while no daemon runs. The one container ends meanwhile.
  const HostTree during = Host();
  node().relay().Kill();
  EXPECT_EQ(Changes(during, Host()), "");
  for (const Status& status :
       {node().runtime().StopContainer(second.container_id),
        node().runtime().RemoveContainer(second.container_id),
        node().runtime().StopPod(second.pod_id), node().runtime().RemovePod(second.pod_id)})
    EXPECT_TRUE(status.ok()) << Describe(status);
  node().watch().Remove(second.container_id);
  ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
  Await("what was the second one's is given back", [&] {
    return LatencyOf(seconds.First()) == "0" && MaskOf(kRequestedMask).Contains(seconds.First());
  });
  ExpectUndisturbed(first, "isolated");

  // By configuration, while the container runs.
  SetClasses("");
  Await("everything is given back", [&] { return Changes(plain, Host()).empty(); });
  EXPECT_EQ(Changes(plain, Host()), "");
  EXPECT_EQ(Setting(first, "cpuset.cpus.partition"), "member");
  EXPECT_EQ(CpusOf(first), own.ToString());

  // By uninstall.
  SetClasses(kUndisturbed);
  ExpectUndisturbed(first, "isolated");
  node().watch().Remove(first.container_id);
  EXPECT_EQ(Ctl({"uninstall", "-apply"})["done"], true);
  EXPECT_EQ(Changes(before, Host()), "") << Why();
  EXPECT_EQ(Setting(first, "cpuset.cpus.partition"), "member");
  EXPECT_EQ(Setting(first, "cpu.max"), "200000 100000");
  EXPECT_EQ(PodSetting(first, "cpu.max"), "200000 100000");
  EXPECT_EQ(CpusOf(first), All().ToString());
}

TEST_P(MachineClassesTest, WhatIsKilledAtAnyInstantIsGivenBack) {
  constexpr int kKills = 30;
  const HostTree before = Host();
  ASSERT_NO_FATAL_FAILURE(OpenWithClasses(kUndisturbed));
  const std::string file = containerd().directory() / "node.yaml";
  const RunningPod pod = RunAnnotated(Guaranteed("pod", 2));
  ExpectUndisturbed(pod, "isolated");
  const CpuSet own = CpuSetOf(pod);
  std::minstd_rand random(7);
  for (int kill = 0; kill < kKills; ++kill) {
    // It begins with all classes, and is on its way to others.
    Put(file,
        WithClasses(kill % 2 == 0 ? ""
                                  : "classes: {isolation: {Partition: root, MaxLatency: n/a}}\n"));
    node().relay().process().Signal(SIGHUP);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 300'000));
    node().relay().Kill();
    ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
  }
  ExpectUndisturbed(pod, "isolated");
  EXPECT_EQ(CpusOf(pod), own.ToString());
  SetClasses("");
  Await("everything is given back", [&] { return Changes(before, Host()).empty(); });
  EXPECT_EQ(Changes(before, Host()), "") << Why();
  EXPECT_EQ(Setting(pod, "cpuset.cpus.partition"), "member");
  EXPECT_EQ(PodSetting(pod, "cpu.max"), "200000 100000");
}

INSTANTIATE_TEST_SUITE_P(Containerd, MachineClassesTest,
                         ::testing::Combine(::testing::Values(Door::kRelay),
                                            ::testing::Values("static")),
                         NameOfMachineCase);

}  // namespace
}  // namespace resmgr::test
