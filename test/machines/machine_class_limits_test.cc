// SPDX-License-Identifier: Apache-2.0
// Classes of block I/O, memory and scheduling with real containers on a real kernel: not only what
// files read, but what they do to a program.
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/unique_fd.h"
#include "test/machines/classes_fixture.h"

namespace resmgr::test {
namespace {

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

  // The kernel gives deadlines only where the CPUs are a scheduling domain of their own.
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
