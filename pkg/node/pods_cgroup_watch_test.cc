// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/pods_cgroup_watch.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/machines/machines.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunUntil;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PodsCgroupWatchTest : public testing::Test {
 protected:
  PodsCgroupWatchTest() { Allow("0-7", "0"); }

  void Allow(const std::string& cpus, const std::string& mems) {
    const std::string root = directory_.File("root") + "/sys/fs/cgroup";
    std::filesystem::create_directories(root + "/kubepods");
    std::ofstream(root + "/cgroup.controllers") << "cpuset\n";
    Put(root + "/kubepods/cpuset.cpus.effective", cpus);
    Put(root + "/kubepods/cpuset.mems.effective", mems);
  }
  void SetOnline(const std::string& cpus) const {
    const std::string directory = directory_.File("root") + "/sys/devices/system/cpu";
    std::filesystem::create_directories(directory);
    Put(directory + "/online", cpus);
  }
  // The watch reads it all the time.
  static void Put(const std::string& file, const std::string& text) {
    std::ofstream(file + ".new") << text << '\n';
    std::filesystem::rename(file + ".new", file);
  }
  PodsCgroupWatch::Options Options() {
    return {.loop = loop_,
            .machine = std::make_shared<const Machine>(test::S1Ht()),
            .places = {.root = directory_.File("root")},
            .period = std::chrono::milliseconds(1)};
  }

  TempDir directory_;
  EventLoop loop_;
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

}  // namespace
}  // namespace resmgr
