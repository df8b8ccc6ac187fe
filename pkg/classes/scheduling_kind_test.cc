// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/scheduling_kind.h"

#include <cerrno>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/class_kind.h"
#include "pkg/classes/testing/fake_thread_attributes.h"
#include "pkg/classes/testing/keeper_fixture.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kBurst = "sys/fs/cgroup/c/cpu.max.burst";
constexpr const char* kQuota = "sys/fs/cgroup/c/cpu.max";

class SchedulingKindTest : public test::KeeperTest {
 protected:
  SchedulingKindTest() {
    auto threads = std::make_unique<test::FakeThreadAttributes>();
    threads_ = threads.get();
    threads_->threads[10] = {};
    files_.tree = {{"sys/fs/cgroup/cgroup.controllers", "cpu\n"},
                   {"sys/fs/cgroup/c/cgroup.threads", "10\n"},
                   {kQuota, "50000 100000\n"},
                   {kBurst, "0\n"}};
    config_.scheduling.classes = {
        {.name = "batch",
         .scheduler = {.policy = SchedulerSettings::Policy::kIdle, .nice = 17},
         .io_priority = {IoPriority::Class::kBestEffort, 6}},
        {.name = "burst", .burst_percent = 100},
        {.name = "rt", .scheduler = {.policy = SchedulerSettings::Policy::kFifo, .priority = 42}}};
    context_.door = [this] { return ways_; };
    kind_ = MakeSchedulingKind(context_, std::move(threads));
  }
  ContainerClass Run() {
    return KeeperTest::Run({kind_.get()}, subjects_).containers.at("id").at(0);
  }
  Adjustment AtCreation(const std::string& name) {
    ChosenClasses chosen;
    chosen.by_name["scheduling"] = {.name = name};
    Adjustment adjustment;
    kind_->AtCreation(chosen, config_, true, adjustment);
    return adjustment;
  }

  CreationWays ways_{.holds_starts = true};
  ClassContext context_;
  test::FakeThreadAttributes* threads_ = nullptr;
  std::unique_ptr<ClassKind> kind_;
};

TEST_F(SchedulingKindTest, ThreadsGetTheClassBeforeTheStart) {
  Add("scheduling", "rt");
  EXPECT_TRUE(kind_->HoldsStart(subjects_[0], config_));
  const ContainerClass mine = Run();
  EXPECT_TRUE(mine.active) << mine.reason;
  EXPECT_EQ(mine.way, "before start");
  EXPECT_EQ(mine.in_force, "fifo 42");
  EXPECT_EQ(threads_->threads.at(10).scheduler, config_.scheduling.Find("rt")->scheduler);
}

TEST_F(SchedulingKindTest, WhatTheContainerChangesItselfStays) {
  Add("scheduling", "rt");
  (void)Run();
  threads_->threads.at(10).scheduler = {.policy = SchedulerSettings::Policy::kBatch};
  threads_->sets = 0;
  EXPECT_EQ(Run().in_force, "batch");
  EXPECT_EQ(threads_->sets, 0);
  // Another class is set for a running container.
  subjects_[0].chosen.by_name["scheduling"].name = "batch";
  EXPECT_EQ(Run().in_force, "idle nice 17, io be 6");
}

TEST_F(SchedulingKindTest, WhatTheContainerChangesItselfStaysAfterARestart) {
  const TempDir directory;
  context_.directory = directory.path() + "/classes";
  const auto start = [this] {
    auto threads = std::make_unique<test::FakeThreadAttributes>();
    if (kind_ != nullptr) threads->threads = threads_->threads;
    threads_ = threads.get();
    kind_ = MakeSchedulingKind(context_, std::move(threads));
  };
  start();
  Add("scheduling", "rt");
  (void)Run();
  threads_->threads.at(10).scheduler = {.policy = SchedulerSettings::Policy::kBatch};
  start();
  EXPECT_EQ(Run().in_force, "batch");
  EXPECT_EQ(threads_->sets, 0);
  // Its program was started again meanwhile.
  threads_->threads[20] = {};
  files_.tree["sys/fs/cgroup/c/cgroup.threads"] = "20\n";
  start();
  EXPECT_EQ(Run().in_force, "fifo 42");
  // The machine was booted meanwhile.
  threads_->threads.at(20).scheduler = {.policy = SchedulerSettings::Policy::kBatch};
  files_.tree["proc/sys/kernel/random/boot_id"] = "2\n";
  start();
  EXPECT_EQ(Run().in_force, "fifo 42");
  // Another class is chosen meanwhile.
  start();
  subjects_[0].chosen.by_name["scheduling"].name = "batch";
  EXPECT_EQ(Run().in_force, "idle nice 17, io be 6");
}

TEST_F(SchedulingKindTest, ThreadsThatBeganWithTheClassAreNotTouched) {
  const SchedulingClassConfig& batch = *config_.scheduling.Find("batch");
  threads_->threads.at(10) = {batch.scheduler, batch.io_priority};
  Add("scheduling", "batch");
  EXPECT_EQ(Run().way, "at creation");
  EXPECT_EQ(threads_->sets, 0);
}

TEST_F(SchedulingKindTest, WhatTheKernelRefusesIsToldAndTriedAgain) {
  Add("scheduling", "rt");
  threads_->scheduler_error = EPERM;
  const ContainerClass refused = Run();
  EXPECT_FALSE(refused.active);
  EXPECT_THAT(refused.reason, HasSubstr("the kernel refuses the scheduler fifo 42"));
  threads_->scheduler_error = 0;
  EXPECT_TRUE(Run().active);
}

// The first thread is the one that is read back.
TEST_F(SchedulingKindTest, AClassThatSomeThreadsLackStaysInactive) {
  config_.scheduling.classes.push_back(
      {.name = "dl",
       .scheduler = {.policy = SchedulerSettings::Policy::kDeadline,
                     .runtime_ns = 60,
                     .deadline_ns = 100,
                     .period_ns = 100}});
  threads_->threads[11] = {};
  threads_->most_deadline_percent = 95;
  files_.tree["sys/fs/cgroup/c/cgroup.threads"] = "10\n11\n";
  Add("scheduling", "dl");
  for (int i = 0; i < 3; ++i) {
    const ContainerClass mine = Run();
    EXPECT_FALSE(mine.active) << i;
    EXPECT_THAT(mine.reason, HasSubstr("1 of 2 threads have it")) << i;
    EXPECT_THAT(mine.in_force, HasSubstr("deadline 60ns")) << i;
  }
  files_.tree["sys/fs/cgroup/c/cgroup.threads"] = "10\n";
  EXPECT_TRUE(Run().active) << "the other one has ended";
}

TEST_F(SchedulingKindTest, TheRuntimeSetsWhatNoKernelRefuses) {
  EXPECT_EQ(AtCreation("batch").wide(), nullptr) << "the CRI has no such fields";
  ways_ = {.io_priority = true};
  EXPECT_FALSE(AtCreation("batch").wide()->scheduler.has_value());
  ways_ = {.io_priority = true, .scheduler = true};
  const Adjustment batch = AtCreation("batch");
  EXPECT_EQ(batch.wide()->scheduler, config_.scheduling.Find("batch")->scheduler);
  EXPECT_EQ(batch.wide()->io_priority, config_.scheduling.Find("batch")->io_priority);
  EXPECT_EQ(AtCreation("rt").wide(), nullptr) << "the container would not start";
  EXPECT_EQ(AtCreation("gold").wide(), nullptr);
}

TEST_F(SchedulingKindTest, ABurstFollowsTheQuota) {
  Add("scheduling", "burst");
  EXPECT_FALSE(kind_->HoldsStart(subjects_[0], config_));
  EXPECT_TRUE(Run().active);
  EXPECT_EQ(files_.tree.at(kBurst), "50000");
  files_.tree[kQuota] = "20000 100000\n";
  EXPECT_EQ(Run().in_force, "20000");
  EXPECT_EQ(files_.tree.at(kBurst), "20000");
  files_.tree[kQuota] = "max 100000\n";
  EXPECT_THAT(Run().reason, HasSubstr("no CPU limit"));
  EXPECT_EQ(files_.tree.at(kBurst), "0\n");
  files_.tree.erase(kBurst);
  files_.tree[kQuota] = "20000 100000\n";
  EXPECT_THAT(Run().reason, HasSubstr("there is no sys/fs/cgroup/c/cpu.max.burst"));
}

TEST_F(SchedulingKindTest, ABurstComesDownBeforeTheQuota) {
  ClassSubject& subject = Add("scheduling", "burst");
  (void)Run();
  ASSERT_EQ(files_.tree.at(kBurst), "50000");
  subject.coming_quota = 30'000;
  (void)Run();
  EXPECT_EQ(files_.tree.at(kBurst), "30000") << "the kernel refuses a quota below it";
  files_.tree[kQuota] = "30000 100000\n";
  (void)Run();
  EXPECT_EQ(files_.tree.at(kBurst), "30000");
  subject.coming_quota = 0;
  files_.tree[kQuota] = "80000 100000\n";
  (void)Run();
  EXPECT_EQ(files_.tree.at(kBurst), "80000") << "after the quota has risen";
}

TEST_F(SchedulingKindTest, AContainerWithoutItsCgroupIsInactiveOnceItRuns) {
  Add("scheduling", "rt").cgroup = "";
  EXPECT_TRUE(Run().active) << "containerd makes it at the start";
  subjects_[0].running = true;
  EXPECT_EQ(Run().reason, "the container has no cgroup");
  subjects_[0].cgroup = "sys/fs/cgroup/gone";
  EXPECT_THAT(Run().reason, HasSubstr("no threads that this daemon can see"));
}

TEST(BurstPlanTest, ABurstIsAPartOfTheQuota) {
  EXPECT_EQ(BurstOf(50'000, 50), 25'000);
  EXPECT_EQ(BurstOf(50'000, 0), 0);
  EXPECT_EQ(BurstOf(50'000, 100), 50'000);
  EXPECT_EQ(BurstOf(50'000, 1000), 50'000) << "the kernel takes no more";
  EXPECT_EQ(BurstOf(-1, 100), std::nullopt);
  EXPECT_EQ(BurstOf(0, 100), std::nullopt);
}

TEST(BurstPlanTest, QuotasOfBothVersionsOfCgroups) {
  EXPECT_EQ(ParseQuota("50000 100000\n").value(), 50'000);
  EXPECT_EQ(ParseQuota("max 100000\n").value(), -1);
  EXPECT_EQ(ParseQuota("50000\n").value(), 50'000);
  EXPECT_EQ(ParseQuota("-1\n").value(), -1);
  EXPECT_FALSE(ParseQuota("").ok());
  EXPECT_FALSE(ParseQuota("x 100000").ok());
}

TEST(BurstPlanTest, PropertyABurstIsNeverAboveTheQuota) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 10'000; ++round) {
    const auto quota = static_cast<int64_t>(random() % (uint64_t{1} << (1 + random() % 62)));
    const auto percent = static_cast<int64_t>(random() % 1001);
    const std::optional<int64_t> burst = BurstOf(quota, percent);
    ASSERT_EQ(burst.has_value(), quota > 0);
    if (!burst) continue;
    ASSERT_LE(*burst, quota);
    ASSERT_GE(*burst, 0);
    const bool exact = percent < 100 && quota < std::numeric_limits<int64_t>::max() / 1000;
    ASSERT_EQ(*burst, exact ? quota * percent / 100 : *burst);
  }
}

}  // namespace
}  // namespace resmgr
