// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/online_watch.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OnlineWatchTest : public testing::Test {
 protected:
  OnlineWatchTest() {
    SetOnline("0-7");
    Allow("0-7");
  }

  void SetOnline(const std::string& cpus) {
    std::filesystem::create_directories(root_ + "/sys/devices/system/cpu");
    std::ofstream(root_ + "/sys/devices/system/cpu/online.new") << cpus << '\n';
    std::filesystem::rename(root_ + "/sys/devices/system/cpu/online.new",
                            root_ + "/sys/devices/system/cpu/online");
  }
  // Sets the CPUs that the cgroup of pods (version 1) allows.
  void Allow(const std::string& cpus) {
    const std::string pods = root_ + "/sys/fs/cgroup/cpuset/kubepods";
    std::filesystem::create_directories(pods);
    std::ofstream(pods + "/cpuset.cpus.new") << cpus << '\n';
    std::filesystem::rename(pods + "/cpuset.cpus.new", pods + "/cpuset.cpus");
  }
  OnlineWatch::Options Options(Machine machine = test::S1Ht()) {
    return {.loop = loop_,
            .machine = std::make_shared<const Machine>(std::move(machine)),
            .places = {.root = root_},
            .look = [this](const CpuSet& offline) { told_ = offline; },
            .period = std::chrono::milliseconds(1),
            .announced = false};
  }
  // The kernel announces this about CPU 7.
  static KernelEvent Cpu7(std::string_view action) {
    return {.action = action, .path = "/devices/system/cpu/cpu7"};
  }
  // False when it does not become so.
  bool RunUntil(const std::function<bool()>& so) {
    const auto ask = loop_.Every(std::chrono::milliseconds(1), [&] {
      if (so()) loop_.Stop();
    });
    const auto end = loop_.After(std::chrono::seconds(20), [&] { loop_.Stop(); });
    loop_.Run();
    return so();
  }

  TempDir directory_;
  const std::string root_ = directory_.File("root");
  EventLoop loop_;
  CpuSet told_;
};

TEST_F(OnlineWatchTest, NoticesCpusThatGoAndComeBack) {
  OnlineWatch watch(Options());
  EXPECT_TRUE(watch.offline().empty());
  SetOnline("0-2,5-7");
  ASSERT_TRUE(RunUntil([&] { return told_ == CpuSet({3, 4}); }));
  EXPECT_EQ(watch.offline(), told_);
  EXPECT_THAT(watch.problems(), ElementsAre(HasSubstr("CPUs 3-4 are offline, so no container")));
  SetOnline("0-2,4-7");
  ASSERT_TRUE(RunUntil([&] { return told_ == CpuSet{3}; }));
  EXPECT_THAT(watch.problems(), ElementsAre(HasSubstr("CPU 3 is offline")));
  SetOnline("0-7");
  ASSERT_TRUE(RunUntil([&] { return told_.empty(); }));
  EXPECT_THAT(watch.problems(), IsEmpty());
}

TEST_F(OnlineWatchTest, ACpuThatTheCgroupOfPodsHasLostStaysOut) {
  OnlineWatch watch(Options());
  SetOnline("0-6");
  Allow("0-6");
  ASSERT_TRUE(RunUntil([&] { return told_ == CpuSet{7}; }));
  SetOnline("0-7");
  ASSERT_TRUE(RunUntil([&] {
    const std::vector<std::string> problems = watch.problems();
    return !problems.empty() && problems[0].find("online again") != std::string::npos;
  }));
  EXPECT_THAT(watch.problems(),
              ElementsAre(HasSubstr("CPU 7 is online again, but the cgroup of pods (/kubepods) may "
                                    "not use it")));
  EXPECT_EQ(told_, CpuSet{7});
  Allow("0-7");
  ASSERT_TRUE(RunUntil([&] { return told_.empty(); }));
  EXPECT_THAT(watch.problems(), IsEmpty());
}

// The kernel has taken it out of the cpusets of containers, which the daemon has to give it back.
TEST_F(OnlineWatchTest, ACpuThatWasAwayBetweenTwoLooksCountsAsOfflineOnce) {
  std::vector<CpuSet> looks;
  OnlineWatch::Options options = Options();
  options.look = [&](const CpuSet& offline) {
    if (looks.empty() || looks.back() != offline) looks.push_back(offline);
  };
  OnlineWatch watch(std::move(options));
  ASSERT_TRUE(RunUntil([&] { return looks.size() == 1; }));
  watch.NoteEvent(Cpu7("offline"));
  watch.NoteEvent(Cpu7("online"));
  ASSERT_TRUE(RunUntil([&] { return looks.size() == 3; }));
  EXPECT_THAT(looks, ElementsAre(CpuSet(), CpuSet{7}, CpuSet()));
}

TEST_F(OnlineWatchTest, ACpuThatWasAwayStaysOutWhileTheCgroupOfPodsLacksIt) {
  OnlineWatch watch(Options());
  Allow("0-6");
  watch.NoteEvent(Cpu7("offline"));
  ASSERT_TRUE(RunUntil([&] {
    const std::vector<std::string> problems = watch.problems();
    return !problems.empty() && problems[0].find("online again") != std::string::npos;
  }));
  EXPECT_EQ(told_, CpuSet{7});
  Allow("0-7");
  ASSERT_TRUE(RunUntil([&] { return told_.empty(); }));
}

// The timer is due before the loop takes what the look before has seen.
TEST_F(OnlineWatchTest, ALookBeginsAfterTheLoopHasTakenTheOneBefore) {
  for (int i = 0; i < 20; ++i) {
    Allow("0-6");
    OnlineWatch watch(Options());
    watch.NoteEvent(Cpu7("offline"));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(RunUntil([&] { return told_ == CpuSet{7}; }));
    int looks = 0;
    ASSERT_TRUE(RunUntil([&] { return ++looks >= 5; }));
    EXPECT_EQ(told_, CpuSet{7}) << "the cgroup of pods lacks it";
  }
}

TEST_F(OnlineWatchTest, UnderCgroupV2TheKernelPutsItBack) {
  std::filesystem::remove_all(root_ + "/sys/fs/cgroup");
  std::filesystem::create_directories(root_ + "/sys/fs/cgroup");
  std::ofstream(root_ + "/sys/fs/cgroup/cgroup.controllers") << "cpuset cpu\n";
  int looks = 0;
  OnlineWatch::Options options = Options();
  options.look = [&](const CpuSet& offline) {
    ++looks;
    told_ = told_ | offline;
  };
  OnlineWatch watch(std::move(options));
  watch.NoteEvent(Cpu7("offline"));
  ASSERT_TRUE(RunUntil([&] { return looks > 3; }));
  EXPECT_TRUE(told_.empty()) << told_.ToString();
}

TEST_F(OnlineWatchTest, OtherEventsOfTheKernelAreNotAboutCpus) {
  OnlineWatch watch(Options());
  for (const std::string_view path :
       {"/devices/system/memory/memory7", "/devices/system/cpu/cpu", "/devices/system/cpu/cpu7x",
        "/devices/system/cpu/cpu99999999999", "/devices/system/cpu/cpu63"})
    watch.NoteEvent({.action = "offline", .path = path});
  int looks = 0;
  ASSERT_TRUE(RunUntil([&] { return ++looks >= 20; }));
  EXPECT_TRUE(told_.empty());
}

TEST_F(OnlineWatchTest, ACpuThatWasNeverKnownAsksForARestart) {
  const Machine all = test::S1Ht();
  Machine::Parts parts{.cpus = all.cpus(), .nodes = all.nodes(), .allowed = all.allowed()};
  parts.cpus[7].online = false;
  SetOnline("0-6");
  OnlineWatch watch(Options(test::MakeMachine(std::move(parts))));
  told_ = CpuSet{1};
  ASSERT_TRUE(RunUntil([&] { return told_.empty(); }));
  EXPECT_THAT(watch.problems(), IsEmpty()) << "it may be meant";
  SetOnline("0-7");
  ASSERT_TRUE(RunUntil([&] { return !watch.problems().empty(); }));
  EXPECT_THAT(watch.problems(), ElementsAre(HasSubstr("CPU 7 is online, but not since the daemon "
                                                      "started: restart the daemon")));
}

TEST_F(OnlineWatchTest, WhatCannotBeReadIsNoNews) {
  OnlineWatch watch(Options());
  SetOnline("0-6");
  ASSERT_TRUE(RunUntil([&] { return told_ == CpuSet{7}; }));
  SetOnline("nonsense");
  int looks = 0;
  EXPECT_TRUE(RunUntil([&] { return ++looks >= 20; }));
  EXPECT_EQ(watch.offline(), CpuSet{7});
}

}  // namespace
}  // namespace resmgr
