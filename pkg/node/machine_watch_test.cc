// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/machine_watch.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pkg/node/kubelet_watch.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/machines/machines.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunUntil;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MachineWatchTest : public testing::Test {
 protected:
  void SetOnline(const std::string& cpus) const { Put("/sys/devices/system/cpu/online", cpus); }
  // Writes a file below the root. A watch reads it all the time.
  void Put(const std::string& file, const std::string& text) const {
    const std::string path = root_ + file;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path + ".new") << text << '\n';
    std::filesystem::rename(path + ".new", path);
  }

  const TempDir directory_;
  const std::string root_ = directory_.File("root");
  EventLoop loop_;
};

class OnlineWatchTest : public MachineWatchTest {
 protected:
  OnlineWatchTest() {
    SetOnline("0-7");
    Allow("0-7");
  }

  // Sets the CPUs that the cgroup of pods (version 1) allows.
  void Allow(const std::string& cpus) const {
    Put("/sys/fs/cgroup/cpuset/kubepods/cpuset.cpus", cpus);
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

  CpuSet told_;
};

TEST_F(OnlineWatchTest, NoticesCpusThatGoAndComeBack) {
  OnlineWatch watch(Options());
  EXPECT_TRUE(watch.offline().empty());
  SetOnline("0-2,5-7");
  ASSERT_TRUE(RunUntil(loop_, [&] { return told_ == CpuSet({3, 4}); }));
  EXPECT_EQ(watch.offline(), told_);
  EXPECT_THAT(watch.problems(), ElementsAre(HasSubstr("CPUs 3-4 are offline, so no container")));
  SetOnline("0-2,4-7");
  ASSERT_TRUE(RunUntil(loop_, [&] { return told_ == CpuSet{3}; }));
  EXPECT_THAT(watch.problems(), ElementsAre(HasSubstr("CPU 3 is offline")));
  SetOnline("0-7");
  ASSERT_TRUE(RunUntil(loop_, [&] { return told_.empty(); }));
  EXPECT_THAT(watch.problems(), IsEmpty());
}

TEST_F(OnlineWatchTest, ACpuThatTheCgroupOfPodsHasLostStaysOut) {
  OnlineWatch watch(Options());
  SetOnline("0-6");
  Allow("0-6");
  ASSERT_TRUE(RunUntil(loop_, [&] { return told_ == CpuSet{7}; }));
  SetOnline("0-7");
  ASSERT_TRUE(RunUntil(loop_, [&] {
    const std::vector<std::string> problems = watch.problems();
    return !problems.empty() && problems[0].find("online again") != std::string::npos;
  }));
  EXPECT_THAT(watch.problems(),
              ElementsAre(HasSubstr("CPU 7 is online again, but the cgroup of pods (/kubepods) may "
                                    "not use it")));
  EXPECT_EQ(told_, CpuSet{7});
  Allow("0-7");
  ASSERT_TRUE(RunUntil(loop_, [&] { return told_.empty(); }));
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
  ASSERT_TRUE(RunUntil(loop_, [&] { return looks.size() == 1; }));
  watch.NoteEvent(Cpu7("offline"));
  watch.NoteEvent(Cpu7("online"));
  ASSERT_TRUE(RunUntil(loop_, [&] { return looks.size() == 3; }));
  EXPECT_THAT(looks, ElementsAre(CpuSet(), CpuSet{7}, CpuSet()));
}

TEST_F(OnlineWatchTest, ACpuThatWasAwayStaysOutWhileTheCgroupOfPodsLacksIt) {
  OnlineWatch watch(Options());
  Allow("0-6");
  watch.NoteEvent(Cpu7("offline"));
  ASSERT_TRUE(RunUntil(loop_, [&] {
    const std::vector<std::string> problems = watch.problems();
    return !problems.empty() && problems[0].find("online again") != std::string::npos;
  }));
  EXPECT_EQ(told_, CpuSet{7});
  Allow("0-7");
  ASSERT_TRUE(RunUntil(loop_, [&] { return told_.empty(); }));
}

// The timer is due before the loop takes what the look before has seen.
TEST_F(OnlineWatchTest, ALookBeginsAfterTheLoopHasTakenTheOneBefore) {
  for (int i = 0; i < 20; ++i) {
    Allow("0-6");
    OnlineWatch watch(Options());
    watch.NoteEvent(Cpu7("offline"));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(RunUntil(loop_, [&] { return told_ == CpuSet{7}; }));
    int looks = 0;
    ASSERT_TRUE(RunUntil(loop_, [&] { return ++looks >= 5; }));
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
  ASSERT_TRUE(RunUntil(loop_, [&] { return looks > 3; }));
  EXPECT_TRUE(told_.empty()) << told_.ToString();
}

TEST_F(OnlineWatchTest, OtherEventsOfTheKernelAreNotAboutCpus) {
  OnlineWatch watch(Options());
  for (const std::string_view path :
       {"/devices/system/memory/memory7", "/devices/system/cpu/cpu", "/devices/system/cpu/cpu7x",
        "/devices/system/cpu/cpu99999999999", "/devices/system/cpu/cpu63"})
    watch.NoteEvent({.action = "offline", .path = path});
  int looks = 0;
  ASSERT_TRUE(RunUntil(loop_, [&] { return ++looks >= 20; }));
  EXPECT_TRUE(told_.empty());
}

TEST_F(OnlineWatchTest, ACpuThatWasNeverKnownAsksForARestart) {
  const Machine all = test::S1Ht();
  Machine::Parts parts{.cpus = all.cpus(), .nodes = all.nodes(), .allowed = all.allowed()};
  parts.cpus[7].online = false;
  SetOnline("0-6");
  OnlineWatch watch(Options(test::MakeMachine(std::move(parts))));
  told_ = CpuSet{1};
  ASSERT_TRUE(RunUntil(loop_, [&] { return told_.empty(); }));
  EXPECT_THAT(watch.problems(), IsEmpty()) << "it may be meant";
  SetOnline("0-7");
  ASSERT_TRUE(RunUntil(loop_, [&] { return !watch.problems().empty(); }));
  EXPECT_THAT(watch.problems(), ElementsAre(HasSubstr("CPU 7 is online, but not since the daemon "
                                                      "started: restart the daemon")));
}

// Virtual machines grow by CPUs that had no directory in sysfs before.
TEST_F(OnlineWatchTest, ACpuThatWasAddedAsksForARestart) {
  OnlineWatch watch(Options());
  SetOnline("0-9");
  ASSERT_TRUE(RunUntil(loop_, [&] { return !watch.problems().empty(); }));
  EXPECT_THAT(watch.problems(), ElementsAre(HasSubstr("CPUs 8-9 are online, but not since the "
                                                      "daemon started: restart the daemon")));
  EXPECT_TRUE(watch.offline().empty());
}

TEST_F(OnlineWatchTest, WhatCannotBeReadIsNoNews) {
  OnlineWatch watch(Options());
  SetOnline("0-6");
  ASSERT_TRUE(RunUntil(loop_, [&] { return told_ == CpuSet{7}; }));
  SetOnline("nonsense");
  int looks = 0;
  EXPECT_TRUE(RunUntil(loop_, [&] { return ++looks >= 20; }));
  EXPECT_EQ(watch.offline(), CpuSet{7});
}

class PodsCgroupWatchTest : public MachineWatchTest {
 protected:
  PodsCgroupWatchTest() { Allow("0-7", "0"); }

  void Allow(const std::string& cpus, const std::string& mems) const {
    Put("/sys/fs/cgroup/cgroup.controllers", "cpuset");
    Put("/sys/fs/cgroup/kubepods/cpuset.cpus.effective", cpus);
    Put("/sys/fs/cgroup/kubepods/cpuset.mems.effective", mems);
  }
  PodsCgroupWatch::Options Options() {
    return {.loop = loop_,
            .machine = std::make_shared<const Machine>(test::S1Ht()),
            .places = {.root = root_},
            .period = std::chrono::milliseconds(1)};
  }
};

TEST_F(PodsCgroupWatchTest, TellsWhatPodsMayNoLongerUse) {
  PodsCgroupWatch watch(Options());
  EXPECT_THAT(watch.problems(), IsEmpty());
  Allow("0-3", "0");
  EXPECT_TRUE(RunUntil(loop_, [&] { return !watch.problems().empty(); }));
  EXPECT_THAT(watch.problems(),
              ElementsAre(HasSubstr("(/kubepods) may no longer use CPUs 4-7, so the runtime")));
  Allow("0-7", "0");
  EXPECT_TRUE(RunUntil(loop_, [&] { return watch.problems().empty(); }));
}

TEST_F(PodsCgroupWatchTest, CpusThatAreOfflineAreNoFaultOfTheCgroup) {
  PodsCgroupWatch::Options options = Options();
  options.offline = [] { return CpuSet{7}; };
  PodsCgroupWatch watch(std::move(options));
  Allow("0-5", "0");
  EXPECT_TRUE(RunUntil(loop_, [&] { return !watch.problems().empty(); }));
  EXPECT_THAT(watch.problems(), ElementsAre(HasSubstr("may no longer use CPUs 6, so")));
}

// The kernel's cpusets hold only nodes that have memory.
TEST_F(PodsCgroupWatchTest, ANodeWithoutMemoryIsNoFaultOfTheCgroup) {
  const Machine whole = test::S1Ht();
  Machine::Parts parts{.cpus = whole.cpus(), .nodes = whole.nodes(), .allowed = whole.allowed()};
  parts.nodes.push_back({.id = 1});
  for (NumaNode& node : parts.nodes)
    node.distances.clear();
  PodsCgroupWatch::Options options = Options();
  options.machine = std::make_shared<const Machine>(test::MakeMachine(std::move(parts)));
  PodsCgroupWatch watch(std::move(options));
  Allow("0-6", "0");
  EXPECT_TRUE(RunUntil(loop_, [&] { return !watch.problems().empty(); }));
  EXPECT_THAT(watch.problems(), ElementsAre(HasSubstr("may no longer use CPUs 7, so")));
}

// The watch of offline CPUs sees the same CPU a moment earlier or later.
TEST_F(PodsCgroupWatchTest, ACpuThatComesBackDuringALookIsNoFaultOfTheCgroup) {
  Allow("0-6", "0");
  int asked = 0;
  PodsCgroupWatch::Options options = Options();
  // At the begin and at the end of each look.
  options.offline = [&asked] { return ++asked % 2 == 1 ? CpuSet{7} : CpuSet(); };
  PodsCgroupWatch watch(std::move(options));
  bool told = false;
  EXPECT_TRUE(RunUntil(loop_, [&] {
    told = told || !watch.problems().empty();
    return asked >= 20;
  }));
  EXPECT_FALSE(told);
}

TEST_F(PodsCgroupWatchTest, ACpuThatHasJustGoneOfflineIsNoFaultOfTheCgroup) {
  SetOnline("0-6");
  Allow("0-5", "0");
  PodsCgroupWatch watch(Options());
  EXPECT_TRUE(RunUntil(loop_, [&] { return !watch.problems().empty(); }));
  EXPECT_THAT(watch.problems(), ElementsAre(HasSubstr("may no longer use CPUs 6, so")));
}

TEST_F(PodsCgroupWatchTest, WhatWasWrongAtTheStartStays) {
  PodsCgroupWatch::Options options = Options();
  options.known = {"a difference"};
  PodsCgroupWatch watch(std::move(options));
  EXPECT_THAT(watch.problems(), ElementsAre("a difference"));
  Allow("0-6", "1");
  // A look may come between the writes of the two files.
  const std::string both = "may no longer use CPUs 7 and memory nodes 0";
  EXPECT_TRUE(RunUntil(loop_, [&] {
    const std::vector<std::string> problems = watch.problems();
    return problems.size() == 2 && problems[1].find(both) != std::string::npos;
  }));
  EXPECT_EQ(watch.problems()[0], "a difference");
}

TEST(CpuManagerPolicyTest, IsReadFromTheKubeletsStateFile) {
  EXPECT_EQ(CpuManagerPolicyOf(R"({"policyName":"static","defaultCpuSet":"0,2-7","entries":{)"
                               R"("u":{"main":"1"}},"checksum":3242152201})"),
            "static");
  EXPECT_EQ(CpuManagerPolicyOf(R"({"policyName":"none","defaultCpuSet":"","checksum":1})"), "none");
  for (const char* const text : {"", "{", "[]", "7", "{}", R"({"policyName":7})", "\xff"})
    EXPECT_EQ(CpuManagerPolicyOf(text), "") << text;
}

class KubeletWatchTest : public testing::Test {
 protected:
  void Put(const std::string& text) const { std::ofstream(file()) << text; }
  std::string file() const { return directory_.File("cpu_manager_state"); }
  KubeletWatch::Options Options() {
    return {.loop = loop_, .file = file(), .period = std::chrono::milliseconds(1)};
  }

  TempDir directory_;
  EventLoop loop_;
};

TEST_F(KubeletWatchTest, ACpuManagerThatIsOnIsAProblemUntilItIsOff) {
  KubeletWatch watch(Options());
  EXPECT_THAT(watch.problems(), IsEmpty()) << "a node without a kubelet";
  Put(R"({"policyName":"static","defaultCpuSet":"0-3"})");
  ASSERT_TRUE(RunUntil(loop_, [&] { return !watch.problems().empty(); }));
  const Problem problem = watch.problems().at(0);
  EXPECT_EQ(problem.kind, "cpu-manager-on");
  EXPECT_THAT(problem.message, HasSubstr("policyName static"));
  EXPECT_THAT(problem.objects, ElementsAre(file()));
  EXPECT_THAT(problem.next, HasSubstr("systemctl restart kubelet"));
  EXPECT_NE(problem.since, std::chrono::system_clock::time_point());
  Put(R"({"policyName":"none","defaultCpuSet":""})");
  EXPECT_TRUE(RunUntil(loop_, [&] { return watch.problems().empty(); }));
}

// Such a file is not read, and no call waits for it.
TEST_F(KubeletWatchTest, AFileThatIsNoneOfTheKubeletsIsNoProblem) {
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  int looks = 0;
  KubeletWatch watch(Options());
  const auto timer = loop_.Every(std::chrono::milliseconds(2), [&looks] { ++looks; });
  EXPECT_TRUE(RunUntil(loop_, [&] { return looks > 5; }));
  EXPECT_THAT(watch.problems(), IsEmpty());
}

}  // namespace
}  // namespace resmgr
