// SPDX-License-Identifier: Apache-2.0
// Classes with real containers on a real kernel: what the kernel has in force before, while and
// after containers have them, as a program in the container and the kernel itself tell it.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/classes/cpu_mask.h"
#include "pkg/sys/unique_fd.h"
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

// Classes of block I/O, memory and scheduling with real containers on a real kernel: not only what
// files read, but what they do to a program.

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr const char* kDisk = "/dev/loop0";
constexpr size_t kBlock = size_t{1} << 20;
constexpr const char* kDiskFile = "/tmp/disk-of-the-test";
constexpr const char* kLimits = R"(
classes:
  blockio:
    Classes:
      slow:
        - {Weight: 80}
        - {Devices: [/dev/loop0], ThrottleWriteBps: 4M, Weight: 300}
  memory: [{name: small, high: 32Mi}]
  scheduling:
    - {name: saved, burst: 50%}
    - {name: whole, burst: 100%}
    - {name: first, policy: fifo, priority: 42, ioClass: be, ioPriority: 6}
    - {name: last, policy: batch, nice: 7, ioClass: idle}
    - {name: timely, policy: deadline, runtime: 10ms, deadline: 100ms, period: 100ms}
  AllowedNamespaces: {blockio: [default], memory: [default], scheduling: [default], isolation: [default]}
)";
constexpr const char* kBlockioClass = "blockioclass.resource-policy.nri.io/pod";
constexpr const char* kMemoryClass = "class.memory-qos.nri.io";
constexpr const char* kSchedulingClass = "scheduling-class.resource-policy.nri.io/pod";
constexpr const char* kIsolation = "isolation.resource-policy.nri.io/pod";

class MachineClassLimitsTest : public MachineClassesFixture {
 protected:
  void SetUp() override {
    MachineClassesFixture::SetUp();
    if (IsSkipped()) return;
    Put("/proc/sys/kernel/printk", "1");
    std::ofstream(kDiskFile).close();
    ASSERT_EQ(::truncate(kDiskFile, 64 * kMiB), 0);
    ASSERT_TRUE(Run({"losetup", kDisk, kDiskFile}).ok());
    Put("/sys/block/loop0/queue/scheduler", "bfq");
  }
  void TearDown() override {
    MachineClassesFixture::TearDown();
    if (IsSkipped()) return;
    EXPECT_TRUE(Run({"losetup", "-d", kDisk}).ok());
  }
  static Status Run(const std::vector<std::string>& words) {
    return RunProgram(words, "/tmp/limits-of-the-test.log", kPatience);
  }
  using NodeTest::Run;

  // The time that a process in the container's cgroup takes for writing to the disk itself, past
  // the page cache. It opens the disk before, since containers may not.
  double SecondsToWrite(const RunningPod& pod, int mebibytes) {
    const UniqueFd disk(::open(kDisk, O_WRONLY | O_DIRECT | O_CLOEXEC));
    const std::string procs = containerd().CgroupPath(pod.container_id, "cgroup.procs");
    const UniqueFd cgroup(::open(procs.c_str(), O_WRONLY | O_CLOEXEC));
    void* const block = std::aligned_alloc(kBlock, kBlock);
    EXPECT_TRUE(disk.valid() && cgroup.valid());
    std::memset(block, 'x', kBlock);
    const Clock::time_point begin = Clock::now();
    const pid_t child = ::fork();
    if (child == 0) {
      // Only what a child of a process with threads may call.
      bool written = ::write(cgroup.get(), "0", 1) == 1;
      for (int i = 0; written && i < mebibytes; ++i)
        written = ::write(disk.get(), block, kBlock) == static_cast<ssize_t>(kBlock);
      ::_exit(written ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    std::free(block);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  // The number behind the word in a file of the container's cgroup.
  int64_t Count(const RunningPod& pod, std::string_view file, std::string_view word) {
    std::istringstream words(containerd().CgroupFile(pod.container_id, file));
    std::string name;
    int64_t number = 0;
    while (words >> name >> number)
      if (name == word) return number;
    return -1;
  }
  static std::string SchedulerOf(int process) {
    sched_param param{};
    const int policy = ::sched_getscheduler(process);
    if (policy < 0 || ::sched_getparam(process, &param) != 0) return std::strerror(errno);
    errno = 0;
    const int nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(process));
    return fmt::format("{} {} nice {}", policy, param.sched_priority, nice);
  }
  // Class and priority, as ioprio_set(2) has them.
  static std::string IoPriorityOf(int process) {
    constexpr int kOfProcess = 1;
    constexpr int kClassShift = 13;
    const int64_t priority = ::syscall(SYS_ioprio_get, kOfProcess, process);
    if (priority < 0) return std::strerror(errno);
    return fmt::format("{} {}", priority >> kClassShift, priority & 7);
  }
  void ExpectScheduler(const RunningPod& pod, const std::string& expected) {
    AwaitText("the scheduler", expected, [&] { return SchedulerOf(ProcessOf(pod)); });
  }
  Json ClassOf(std::string_view kind, std::string_view name) {
    for (const Json& one : Ctl({"classes"}))
      if (one.value("kind", "") == kind && one.value("name", "") == name) return one;
    return Json::object();
  }
};

TEST_P(MachineClassLimitsTest, DisksAndMemoryAreLimitedAndFreeAgain) {
  constexpr int kWritten = 12;
  ASSERT_NO_FATAL_FAILURE(OpenWithClasses(kLimits));
  const RunningPod disk = RunAnnotated(BestEffort("disk"), {{kBlockioClass, "slow"}});
  AwaitSetting(disk, "io.max", "7:0 rbps=max wbps=4000000 riops=max wiops=max");
  AwaitSetting(disk, "io.weight", "default 708");
  AwaitSetting(disk, "io.bfq.weight", "default 80\n7:0 300");
  EXPECT_EQ(ClassOf("blockio", "slow").value("state", ""), "active") << Why();
  const double slow = SecondsToWrite(disk, kWritten);
  EXPECT_GT(slow, 0.8 * kWritten * kMiB / 4e6);

  // It wants twice as much as it may have without being throttled.
  Workload greedy = Guaranteed("greedy", 1);
  greedy.memory_limit = Bytes{160 * kMiB};
  greedy.command = {"/bin/sh", "-c", "dd if=/dev/zero bs=96M | sleep 100000"};
  const RunningPod memory = RunAnnotated(greedy, {{kMemoryClass, "small"}});
  EXPECT_EQ(Setting(memory, "memory.high"), "33554432");
  EXPECT_EQ(Setting(memory, "memory.max"), "167772160");
  Await("it is throttled", [&] { return Count(memory, "memory.events", "high") > 0; });
  const int64_t throttled = Count(memory, "memory.events", "high");
  Await("it is throttled again",
        [&] { return Count(memory, "memory.events", "high") > throttled; });
  EXPECT_LT(std::stoll(Outside(memory, "memory.current")), 90 * kMiB);

  SetClasses("");
  AwaitSetting(memory, "memory.high", "max");
  ExpectFull(memory);
  EXPECT_EQ(Count(memory, "memory.events", "oom_kill"), 0);
  AwaitSetting(disk, "io.max", "");
  EXPECT_EQ(Setting(disk, "io.weight"), "default 100");
  EXPECT_EQ(Setting(disk, "io.bfq.weight"), "default 100");
  EXPECT_LT(SecondsToWrite(disk, kWritten), 0.7 * slow);
}

TEST_P(MachineClassLimitsTest, ProgramsAreScheduledAsTheirClassesSay) {
  ASSERT_NO_FATAL_FAILURE(OpenWithClasses(kLimits));
  // Above its limit by what it has saved up, which follows the limit.
  Workload limited = Burstable("limited", MilliCpu{100});
  limited.cpu_limit = MilliCpu{400};
  RunningPod saved = RunAnnotated(limited, {{kSchedulingClass, "saved"}});
  AwaitSetting(saved, "cpu.max.burst", "20000");
  EXPECT_EQ(Setting(saved, "cpu.max"), "40000 100000");
  limited.cpu_limit = MilliCpu{150};
  Resize(limited, &saved);
  EXPECT_EQ(Setting(saved, "cpu.max"), "15000 100000");
  AwaitSetting(saved, "cpu.max.burst", "7500");
  limited.cpu_limit = MilliCpu{600};
  Resize(limited, &saved);
  EXPECT_EQ(Setting(saved, "cpu.max"), "60000 100000");
  AwaitSetting(saved, "cpu.max.burst", "30000");

  const RunningPod first = RunAnnotated(BestEffort("first"), {{kSchedulingClass, "first"}});
  ExpectScheduler(first, fmt::format("{} 42 nice 0", SCHED_FIFO));
  AwaitText("the I/O priority", "2 6", [&] { return IoPriorityOf(ProcessOf(first)); });
  const RunningPod last = RunAnnotated(BestEffort("last"), {{kSchedulingClass, "last"}});
  ExpectScheduler(last, fmt::format("{} 0 nice 7", SCHED_BATCH));
  AwaitText("the I/O priority", "3 0", [&] { return IoPriorityOf(ProcessOf(last)); });

  // SCHED_DEADLINE requires CPUs that are a scheduling domain of their own.
  constexpr int kDeadline = 6;
  const RunningPod timely = RunAnnotated(
      Guaranteed("timely", 1), {{kSchedulingClass, "timely"}, {kIsolation, "{Partition: root}"}});
  ExpectScheduler(timely, fmt::format("{} 0 nice 0", kDeadline));
  EXPECT_EQ(Setting(timely, "cpuset.cpus.partition"), "root");
  const std::string why = Why();
  for (const char* const name : {"saved", "first", "last", "timely"})
    EXPECT_EQ(ClassOf("scheduling", name).value("state", ""), "active") << why;
  SetClasses("");
  AwaitSetting(saved, "cpu.max.burst", "0");
  EXPECT_EQ(Setting(saved, "cpu.max"), "60000 100000");
}

// A program that has saved up time runs longer in a period than its limit, and never longer than
// limit and burst.
TEST_P(MachineClassLimitsTest, ABurstIsTimeThatWasSavedUp) {
  ASSERT_NO_FATAL_FAILURE(OpenWithClasses(kLimits));
  Workload limited = Burstable("whole", MilliCpu{100});
  limited.cpu_limit = MilliCpu{400};
  // It rests for ten periods, then works until it is throttled.
  limited.command = {"/bin/sh", "-c",
                     "while :; do sleep 1; i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; done"};
  const RunningPod pod = RunAnnotated(limited, {{kSchedulingClass, "whole"}});
  AwaitSetting(pod, "cpu.max.burst", "40000");
  EXPECT_EQ(Setting(pod, "cpu.max"), "40000 100000");
  Await("it has used more than its limit in some periods",
        [&] { return Count(pod, "cpu.stat", "nr_bursts") > 1; });
  const int64_t periods = Count(pod, "cpu.stat", "nr_bursts");
  const int64_t beyond_us = Count(pod, "cpu.stat", "burst_usec");
  EXPECT_GT(beyond_us, 0);
  EXPECT_LE(beyond_us, (periods + 1) * 40'000);
}

TEST_P(MachineClassLimitsTest, ThrottlingByAClassAndKillsByALimitAreProblems) {
  ASSERT_NO_FATAL_FAILURE(OpenWithClasses(std::string("usage: {Interval: 5s}") + kLimits));
  Workload greedy = Guaranteed("greedy", 1);
  greedy.memory_limit = Bytes{160 * kMiB};
  greedy.command = {"/bin/sh", "-c", "dd if=/dev/zero bs=96M | sleep 100000"};
  const RunningPod throttled = RunAnnotated(greedy, {{kMemoryClass, "small"}});
  // Its shell starts another one each time.
  Workload hungry = Guaranteed("hungry", 1);
  hungry.memory_limit = Bytes{32 * kMiB};
  hungry.command = {"/bin/sh", "-c",
                    "while :; do dd if=/dev/zero of=/dev/null bs=96M count=1; sleep 15; done"};
  const RunningPod killed = RunAnnotated(hungry);
  const auto await = [this](const RunningPod& pod, const std::string& kind) {
    Json problem;
    const Status came = WaitUntil(kind, std::chrono::seconds(240), [&] {
      problem = ProblemOf(pod, kind);
      return !problem.empty();
    });
    EXPECT_TRUE(came.ok()) << Ctl({"status"}) << Ctl({"top"});
    return problem.value("message", "");
  };
  const std::string kills = await(killed, "out-of-memory");
  EXPECT_NE(kills.find("default/hungry/hungry"), std::string::npos) << kills;
  EXPECT_NE(kills.find("by its limit of 32"), std::string::npos) << kills;
  EXPECT_GT(Count(killed, "memory.events", "oom_kill"), 0);
  const std::string high = await(throttled, "memory-high");
  EXPECT_NE(high.find("reaches memory.high (32"), std::string::npos) << high;
  EXPECT_EQ(Count(throttled, "memory.events", "oom_kill"), 0);
  EXPECT_TRUE(ProblemOf(throttled, "out-of-memory").empty());
  SetClasses("usage: {Interval: 5s}");
  AwaitSetting(throttled, "memory.high", "max");
  Await("it is no problem any more", [&] { return ProblemOf(throttled, "memory-high").empty(); });
}

INSTANTIATE_TEST_SUITE_P(Containerd, MachineClassLimitsTest,
                         ::testing::Combine(::testing::Values(Door::kRelay),
                                            ::testing::Values("static")),
                         NameOfMachineCase);

}  // namespace
}  // namespace resmgr::test
