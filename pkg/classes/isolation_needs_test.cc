// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/isolation_needs.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/testing/fake_host_files.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A kernel with everything, on cgroup v2.
class IsolationNeedsTest : public testing::Test {
 protected:
  IsolationNeedsTest() {
    files_.tree = {{"sys/devices/system/cpu/online", "2-7\n"},
                   {"proc/irq/default_smp_affinity", "ff\n"},
                   {"sys/devices/virtual/workqueue/cpumask", "ff\n"},
                   {"sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us", "0\n"},
                   {"sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n"},
                   {"sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n"},
                   {"proc/sys/kernel/osrelease", "6.7.0\n"}};
  }
  // "": nothing is lacking.
  std::string Lacks(const std::string& kind) {
    const AbsentKinds absent = FindAbsentIsolation(files_);
    const auto found = absent.find(kind);
    return found == absent.end() ? "" : found->second.reason;
  }

  test::FakeHostFiles files_;
};

TEST_F(IsolationNeedsTest, NothingIsLackingWhereEverythingIs) {
  EXPECT_TRUE(FindAbsentIsolation(files_).empty());
}

TEST_F(IsolationNeedsTest, PartitionsNeedAKernelAndAController) {
  auto& release = files_.tree["proc/sys/kernel/osrelease"];
  release = "6.6.12-generic\n";
  EXPECT_THAT(Lacks("partition"), HasSubstr("a partition needs Linux 6.7"));
  release = "5.15\n";
  EXPECT_THAT(Lacks("partition"), HasSubstr("a partition needs Linux 6.7"));
  files_.tree["sys/fs/cgroup/kubepods.slice/cpuset.cpus.partition"] = "member\n";
  EXPECT_THAT(Lacks("partition"), HasSubstr("a partition needs Linux 6.7"));
  files_.tree["sys/fs/cgroup/kubepods.slice/cpuset.cpus.partition"] = "root\n";
  EXPECT_EQ(Lacks("partition"), "") << "one below it needs nothing else";
  files_.tree["sys/fs/cgroup/cgroup.controllers"] = "cpu\n";
  EXPECT_EQ(Lacks("partition"), "sys/fs/cgroup/cgroup.controllers has no cpuset");
}

TEST_F(IsolationNeedsTest, QuotasNeedTheControllerOfEitherVersion) {
  files_.tree["sys/fs/cgroup/cgroup.controllers"] = "cpuset memory\n";
  EXPECT_EQ(Lacks("quota"), "sys/fs/cgroup/cgroup.controllers has no cpu");
  files_.tree.erase("sys/fs/cgroup/cgroup.controllers");
  EXPECT_EQ(Lacks("quota"), "there is no sys/fs/cgroup/cpu");
  files_.tree["sys/fs/cgroup/cpu/cpu.cfs_quota_us"] = "-1\n";
  EXPECT_EQ(Lacks("quota"), "");
}

TEST_F(IsolationNeedsTest, AMachineHasTheGovernorsThatItsKernelLists) {
  files_.tree["sys/devices/system/cpu/cpu2/cpufreq/scaling_available_governors"] =
      "performance powersave \n";
  const AbsentKinds absent = FindAbsentIsolation(files_);
  ASSERT_TRUE(absent.contains("clock"));
  EXPECT_THAT(absent.find("clock")->second.but, ElementsAre("performance", "powersave"));
}

TEST_F(IsolationNeedsTest, AFileThatCannotBeReadIsNotLacking) {
  files_.unreadable.insert("proc/irq/default_smp_affinity");
  EXPECT_EQ(Lacks("interrupts"), "");
}

}  // namespace
}  // namespace resmgr
