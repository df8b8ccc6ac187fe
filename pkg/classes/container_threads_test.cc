// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/container_threads.h"

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pkg/classes/testing/fake_host_files.h"
#include "pkg/classes/testing/fake_thread_attributes.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using SchedPolicy = SchedulerSettings::Policy;

constexpr SchedulerSettings::Flag kReset = SchedulerSettings::Flag::kResetOnFork;

class SchedulingThreadsTest : public testing::Test {
 protected:
  SchedulingThreadsTest() {
    files_.tree["c/cgroup.threads"] = "10\n11\n";
    files_.tree["c/cgroup.procs"] = "10\n";
    files_.tree["c/memory.max"] = "max\n";
    for (const pid_t thread : {10, 11, 12, 13})
      attributes_.threads[thread] = {};
  }
  ThreadsOutcome Set() { return SetThreads("c", true, wanted_, files_, attributes_); }

  test::FakeHostFiles files_;
  test::FakeThreadAttributes attributes_;
  const SchedulingClassConfig wanted_{
      .scheduler = {.policy = SchedPolicy::kFifo, .priority = 42, .flags = {kReset}},
      .io_priority = {IoPriority::Class::kBestEffort, 6}};
};

TEST_F(SchedulingThreadsTest, AllThreadsGetTheSettings) {
  const ThreadsOutcome outcome = Set();
  EXPECT_EQ(outcome.threads, 2U);
  EXPECT_TRUE(outcome.scheduler.ok());
  EXPECT_TRUE(outcome.io.ok());
  EXPECT_EQ(outcome.in_force, "fifo 42, io be 6");
  EXPECT_EQ(attributes_.threads.at(11).scheduler, wanted_.scheduler);
  EXPECT_EQ(attributes_.threads.at(12).scheduler, SchedulerSettings()) << "another container's";
}

TEST_F(SchedulingThreadsTest, ThreadsThatBeginMeanwhileAndInCgroupsBelowAreFound) {
  files_.tree["c/init.scope/cgroup.threads"] = "13\n";
  attributes_.on_set = [this](pid_t thread) {
    if (thread == 11) files_.tree["c/cgroup.threads"] = "10\n11\n12\n";
  };
  EXPECT_EQ(Set().threads, 4U);
  EXPECT_EQ(attributes_.threads.at(13).io, wanted_.io_priority);
}

// A container that may make cgroups must not keep the worker, and with it starts, busy.
TEST_F(SchedulingThreadsTest, TheNumberOfCgroupsBelowIsBounded) {
  files_.tree.clear();
  for (int i = 0; i < 3000; ++i) {
    files_.tree[fmt::format("c/{:04}/cgroup.threads", i)] = fmt::format("{}\n", 1000 + i);
    attributes_.threads[1000 + i] = {};
  }
  files_.tree["c/cgroup.threads"] = "10\n";
  EXPECT_EQ(Set().threads, 1024U);
  EXPECT_EQ(attributes_.threads.at(10).io, wanted_.io_priority);
}

TEST_F(SchedulingThreadsTest, AThreadThatHasEndedIsNoError) {
  attributes_.threads.erase(11);
  const ThreadsOutcome outcome = Set();
  EXPECT_EQ(outcome.threads, 1U);
  EXPECT_TRUE(outcome.scheduler.ok());
}

TEST_F(SchedulingThreadsTest, ARefusalNamesItsHalfAndTheOtherOneIsInForce) {
  attributes_.scheduler_error = EPERM;
  const ThreadsOutcome outcome = Set();
  EXPECT_EQ(outcome.threads, 0U);
  EXPECT_THAT(std::string(Message(outcome.scheduler)),
              HasSubstr("the kernel refuses the scheduler fifo 42; it needs CAP_SYS_NICE, "
                        "a kernel with CONFIG_RT_GROUP_SCHED"));
  EXPECT_TRUE(outcome.io.ok());
  EXPECT_EQ(attributes_.threads.at(10).io, wanted_.io_priority);
  EXPECT_EQ(outcome.in_force, "io be 6");
}

// One CPU has 95 % for deadlines, as kernels leave the rest to others.
TEST_F(SchedulingThreadsTest, DeadlinesBeyondTheCpusTimeAreToldWithThoseThatHaveThem) {
  const SchedulerSettings third{.policy = SchedPolicy::kDeadline,
                                .runtime_ns = 10'000'000,
                                .deadline_ns = 20'000'000,
                                .period_ns = 25'000'000};
  files_.tree["c/cgroup.threads"] = "10\n11\n12\n";
  attributes_.most_deadline_percent = 95;
  const ThreadsOutcome outcome = SetThreads("c", true, {.scheduler = third}, files_, attributes_);
  EXPECT_EQ(outcome.threads, 2U);
  EXPECT_THAT(std::string(Message(outcome.scheduler)),
              AllOf(HasSubstr("the kernel refuses the scheduler deadline 10000000ns"),
                    HasSubstr("2 of 3 threads have it, and the runtimes of all together may be "
                              "95 % of their periods")));
  EXPECT_EQ(attributes_.threads.at(12).scheduler, SchedulerSettings());
  attributes_.most_deadline_percent = 190;  // of two CPUs
  EXPECT_TRUE(SetThreads("c", true, {.scheduler = third}, files_, attributes_).scheduler.ok());
}

TEST_F(SchedulingThreadsTest, OnCgroupV1TheThreadsAreTasks) {
  files_.tree["v1/tasks"] = "12\n";
  EXPECT_EQ(SetThreads("v1", false, wanted_, files_, attributes_).threads, 1U);
  EXPECT_EQ(ReadThreads("v1", false, wanted_, files_, attributes_), "fifo 42, io be 6");
  EXPECT_EQ(ReadThreads("gone", true, wanted_, files_, attributes_), std::nullopt);
}

TEST_F(SchedulingThreadsTest, AContainerThatKeepsMakingThreadsEndsTheSearch) {
  int next = 100;
  attributes_.on_set = [&](pid_t) {
    attributes_.threads[++next] = {};
    files_.tree["c/cgroup.threads"] += fmt::format("{}\n", next);
  };
  EXPECT_LT(Set().threads, 1000U);
}

// The kernel itself, with a thread of this process. Settings that need no privilege.
TEST(KernelThreadAttributesTest, WhatIsSetIsRead) {
  std::mutex mutex;
  std::condition_variable changed;
  pid_t thread = 0;
  bool over = false;
  std::thread other([&] {
    std::unique_lock lock(mutex);
    thread = static_cast<pid_t>(::syscall(SYS_gettid));
    changed.notify_all();
    changed.wait(lock, [&over] { return over; });
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&thread] { return thread != 0; });
  }
  KernelThreadAttributes kernel;
  SchedulerSettings scheduler;
  EXPECT_EQ(kernel.GetScheduler(thread, scheduler), 0);
  const SchedulerSettings batch{.policy = SchedPolicy::kBatch, .nice = 19};
  EXPECT_EQ(kernel.SetScheduler(thread, batch), 0);
  SchedulerSettings read;
  EXPECT_EQ(kernel.GetScheduler(thread, read), 0);
  EXPECT_EQ(ShownScheduler(read), "batch nice 19");
  const SchedulerSettings idle{.policy = SchedPolicy::kIdle, .nice = 19};
  EXPECT_EQ(kernel.SetScheduler(thread, idle), 0);
  EXPECT_EQ(kernel.GetScheduler(thread, read), 0);
  EXPECT_EQ(ShownScheduler(read), "idle nice 19");
  const IoPriority io{IoPriority::Class::kBestEffort, 6};
  EXPECT_EQ(kernel.SetIoPriority(thread, io), 0);
  IoPriority read_io;
  EXPECT_EQ(kernel.GetIoPriority(thread, read_io), 0);
  EXPECT_EQ(read_io, io);
  {
    const std::lock_guard lock(mutex);
    over = true;
  }
  changed.notify_all();
  other.join();
  // The kernel tells of its end a moment before the thread has no number anymore.
  EXPECT_TRUE(test::Eventually([&] { return kernel.SetIoPriority(thread, io) == ESRCH; }));
}

}  // namespace
}  // namespace resmgr
