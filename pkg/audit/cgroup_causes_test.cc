// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/cgroup_causes.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>

#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

class CgroupCausesTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(mount_.path()) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  void Unified() {
    Put("cgroup.controllers", "cpuset cpu");
    Put("cgroup.subtree_control", "cpuset cpu");
    Put("kubepods/cgroup.subtree_control", "cpuset cpu");
  }
  std::string Cause(std::string_view cpus, const std::string& id = "abc",
                    const std::string& parent = "/kubepods/pod1") const {
    const CgroupReader cgroups(mount_.path(), mount_.File("proc"), mount_.File("online"));
    CpusetLimits limits = cgroups.Limits();
    return CauseOfRefusal(cgroups, limits,
                          {.cgroup_parent = parent,
                           .id = ContainerId(id),
                           .cpus = CpuSet::Parse(cpus).value(),
                           .mems = NodeSet{0}});
  }

  TempDir mount_;
};

// runc: "write .../cpuset.cpus: permission denied".
TEST_F(CgroupCausesTest, AParentOfVersionOneThatIsSmaller) {
  Put("cpuset/kubepods/cpuset.cpus", "0-3");
  Put("cpuset/kubepods/pod1/cpuset.cpus", "0-3");
  Put("cpuset/kubepods/pod1/cpuset.mems", "0");
  Put("cpuset/kubepods/pod1/abc/cpuset.cpus", "0-1");
  EXPECT_EQ(Cause("4-5"), "/kubepods allows CPUs 0-3 only: widen its cpuset.cpus");
  EXPECT_EQ(Cause("4-5", ""), "/kubepods allows CPUs 0-3 only: widen its cpuset.cpus")
      << "it was not created";
  EXPECT_EQ(Cause("2-3"), "");
}

// runc: "write .../cpuset.cpus: device or resource busy".
TEST_F(CgroupCausesTest, ACgroupOfVersionOneThatTheContainerMade) {
  Put("cpuset/kubepods/pod1/cpuset.cpus", "0-7");
  Put("cpuset/kubepods/pod1/cpuset.mems", "0");
  Put("cpuset/kubepods/pod1/abc/cpuset.cpus", "0-7");
  Put("cpuset/kubepods/pod1/abc/docker/cpuset.cpus", "0-7");
  EXPECT_EQ(Cause("0,2-7"),
            "/kubepods/pod1/abc/docker, which the container made, has CPU 1: write fewer into its "
            "cpuset.cpus");
}

// runc: "cannot enter cgroupv2 ... with domain controllers -- it is in threaded mode".
TEST_F(CgroupCausesTest, APodWhoseCgroupTakesNoContainer) {
  Unified();
  Put("kubepods/pod1/cgroup.type", "threaded");
  EXPECT_EQ(
      Cause("1", ""),
      "cgroup.type of /kubepods/pod1 is \"threaded\", so it takes no container: make it anew");
  Put("kubepods/pod1/cgroup.type", "domain invalid");
  EXPECT_TRUE(Cause("1", "").starts_with("cgroup.type of /kubepods/pod1 is \"domain invalid\""));
}

// runc: ".../cpuset.cpus: no such file or directory".
TEST_F(CgroupCausesTest, AControllerThatIsNotEnabled) {
  Unified();
  Put("kubepods/cgroup.subtree_control", "cpu");
  Put("kubepods/pod1/abc/cpu.weight", "39");
  EXPECT_EQ(Cause("1"),
            "the controller cpuset is not enabled in cgroup.subtree_control of /kubepods: write "
            "+cpuset into it");
}

// A newer kernel refuses CPUs that a cgroup beside it has exclusively.
TEST_F(CgroupCausesTest, ACgroupBesideItWithExclusiveCpus) {
  Unified();
  Put("kubepods/pod1/cpuset.cpus.effective", "0-7");
  Put("kubepods/pod1/cpuset.mems.effective", "0");
  Put("kubepods/pod1/abc/cpuset.cpus.exclusive", "4-5");
  Put("kubepods/pod1/abc/cpuset.cpus", "4-5");
  Put("kubepods/pod1/other/cpuset.cpus.exclusive", "5-7");
  EXPECT_EQ(Cause("4-5"),
            "CPU 5 is in cpuset.cpus.exclusive of /kubepods/pod1/other: write fewer into it");
}

TEST_F(CgroupCausesTest, APartitionOfOthers) {
  Unified();
  Put("kubepods/pod1/cpuset.cpus.effective", "0-6");
  Put("kubepods/pod1/cpuset.mems.effective", "0");
  Put("foo/cpuset.cpus.partition", "root");
  Put("foo/cpuset.cpus.effective", "7");
  EXPECT_EQ(Cause("6-7"),
            "CPU 7 belongs to the partition of /foo: write member into its cpuset.cpus.partition");
  Put("kubepods.slice/kubepods-pod2.slice/cpuset.cpus.effective", "0-6");
  Put("kubepods.slice/kubepods-pod2.slice/cpuset.mems.effective", "0");
  EXPECT_EQ(Cause("6-7", "", "kubepods-pod2.slice"),
            "CPU 7 belongs to the partition of /foo: write member into its cpuset.cpus.partition");
}

TEST_F(CgroupCausesTest, LooksNowhereElse) {
  Unified();
  EXPECT_EQ(Cause("1", "", ""), "") << "the runtime has a default that is not known";
  EXPECT_EQ(Cause("1", "", "/kubepods/../../etc"), "");
}

TEST_F(CgroupCausesTest, AParentThatIsTooLongHasNoCause) {
  Put("cpuset/kubepods/cpuset.cpus", "0-3");
  std::string parent = "/kubepods";
  for (int i = 0; i < 4096; ++i)
    parent += "/a";
  EXPECT_EQ(Cause("4-5", "", parent), "");
  EXPECT_EQ(Cause("4-5", "abc", parent), "");
  std::string slice;
  for (int i = 0; i < 4096; ++i)
    slice += "a-";
  EXPECT_EQ(Cause("4-5", "", slice + "a.slice"), "");
}

TEST(HungCgroupCausesTest, DelayNoCallForLong) {
  std::promise<void> go;
  EventLoop loop;
  CgroupCauses causes(
      loop,
      [gate = go.get_future().share()](const RefusalCauses::Subject&) {
        gate.wait();
        return std::string("a cause");
      },
      std::chrono::milliseconds(20));
  std::string found = "none";
  causes.Find({}, [&](const std::string& cause) {
    found = cause;
    loop.Stop();
  });
  EXPECT_EQ(found, "none") << "not from within";
  loop.Run();
  EXPECT_EQ(found, "");
  go.set_value();
}

}  // namespace
}  // namespace resmgr
