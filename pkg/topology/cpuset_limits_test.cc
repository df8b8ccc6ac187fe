// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/cpuset_limits.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

// Cgroups as the files that the kernel shows.
class CpusetLimitsTest : public testing::Test {
 protected:
  CpusetLimitsTest() {
    Put("cgroup.controllers", "cpuset cpu");
    Put("cgroup.subtree_control", "cpuset cpu");
    Put("cpuset.cpus.effective", "0-15");
    std::ofstream(directory_.File("online")) << "0-15\n";
  }
  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(directory_.File("mount")) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  // A cgroup that was told `cpus`.
  void Group(const std::string& path, const std::string& cpus, const std::string& effective,
             const std::string& partition = "member") {
    Put(path + "/cpuset.cpus", cpus);
    Put(path + "/cpuset.cpus.effective", effective);
    Put(path + "/cpuset.cpus.partition", partition);
    Put(path + "/cgroup.type", "domain");
    Put(path + "/cgroup.subtree_control", "cpuset cpu");
  }
  CpusetLimits Limits() const {
    CpusetHierarchy hierarchy = CpusetHierarchy::At(directory_.File("mount"));
    hierarchy.online = directory_.File("online");
    return CpusetLimits(hierarchy);
  }
  std::string WhyNot(std::string_view path, std::string_view cpus) const {
    return Limits().WhyNot(path, CpuSet::Parse(cpus).value());
  }

  TempDir directory_;
};

TEST_F(CpusetLimitsTest, ACgroupAboveThatIsSmallerIsNamed) {
  Group("kubepods.slice", "0-3", "0-3");
  Group("kubepods.slice/pod1", "", "0-3");
  EXPECT_EQ(WhyNot("/kubepods.slice/pod1", "4-5"),
            "/kubepods.slice allows CPUs 0-3 only: widen its cpuset.cpus");
  Group("kubepods.slice", "7", "7");
  EXPECT_EQ(WhyNot("kubepods.slice/pod1", "4"),
            "/kubepods.slice allows CPU 7 only: widen its cpuset.cpus");
}

// A client of the runtime may tell any path, and each step of it is a path of its own.
TEST_F(CpusetLimitsTest, APathThatIsTooLongNamesNoCgroup) {
  Group("a", "0-3", "0-3");
  Put("a/cpuset.mems", "0");
  Put("a/cgroup.type", "threaded");
  std::string path;
  for (int i = 0; i < 4096; ++i)
    path += "/a";
  EXPECT_EQ(WhyNot(path, "4-5"), "");
  EXPECT_EQ(Limits().WhyNot(path, NodeSet{1}), "");
  EXPECT_EQ(Limits().WhyNone(path), "");
  path.resize(1024);
  EXPECT_NE(WhyNot(path, "4-5"), "");
  EXPECT_NE(Limits().WhyNone(path), "");
}

// The kernel ignores a set without existing CPUs.
TEST_F(CpusetLimitsTest, ACgroupAboveWhoseSetHasNoEffectIsNotNamed) {
  Group("kubepods", "14-15", "0-3");
  EXPECT_EQ(WhyNot("/kubepods", "2"), "");
}

TEST_F(CpusetLimitsTest, APartitionOfOthersIsNamed) {
  Put("cpuset.cpus.effective", "0-3,6-15");
  Group("system.slice/foo", "4-5", "4-5", "root");
  Group("kubepods/pod1", "", "0-3,6-15");
  EXPECT_EQ(WhyNot("/kubepods/pod1", "5"),
            "CPU 5 belongs to the partition of /system.slice/foo: write member into its "
            "cpuset.cpus.partition");
  Group("system.slice/foo", "4-5", "4-5", "isolated");
  EXPECT_EQ(WhyNot("/kubepods/pod1", "4-5"),
            "CPUs 4-5 belong to the partition of /system.slice/foo: write member into its "
            "cpuset.cpus.partition");
  Group("system.slice/foo", "4-5", "4-5", "root invalid (Cpu list in cpuset.cpus not exclusive)");
  EXPECT_EQ(WhyNot("/kubepods/pod1", "4-5"), "");
}

// Linux 6.7 and newer: a partition anywhere may be told its CPUs by cpuset.cpus.exclusive.
TEST_F(CpusetLimitsTest, APartitionWithExclusiveCpusIsNamed) {
  Group("system.slice/foo", "", "9", "root");
  Put("system.slice/foo/cpuset.cpus.exclusive.effective", "8-9");
  EXPECT_EQ(WhyNot("/kubepods/pod1", "8"),
            "CPU 8 belongs to the partition of /system.slice/foo: write member into its "
            "cpuset.cpus.partition");
  EXPECT_EQ(WhyNot("/system.slice/foo", "8"), "") << "it has them";
  EXPECT_EQ(WhyNot("/system.slice/foo", "3"),
            "/system.slice/foo allows CPUs 8-9 only: widen its cpuset.cpus");
}

// As a kernel shows it where pods are a partition, in which another pod has one.
TEST_F(CpusetLimitsTest, TheInnermostPartitionOfOthersCounts) {
  Put("cpuset.cpus.effective", "0-1,8-15");
  Group("pods", "2-7", "2-3,5-7", "root");
  Group("pods/pod2", "4", "4", "root");
  Group("pods/pod1", "", "2-3,5-7");
  EXPECT_EQ(WhyNot("/pods/pod1", "4"),
            "CPU 4 belongs to the partition of /pods/pod2: write member into its "
            "cpuset.cpus.partition");
}

TEST_F(CpusetLimitsTest, OfManyPartitionsAFewAreNamed) {
  for (int i = 0; i < 10; ++i)
    Group(fmt::format("p{}", i), fmt::format("{}", i), fmt::format("{}", i), "root");
  const std::string why = WhyNot("/kubepods", "0-9");
  EXPECT_TRUE(
      why.ends_with("CPU 3 belongs to the partition of /p3: write member into its "
                    "cpuset.cpus.partition; more partitions have others"))
      << why;
}

TEST_F(CpusetLimitsTest, EachCauseIsNamed) {
  std::ofstream(directory_.File("online")) << "0-11,13-15\n";
  Group("a", "0-9,12", "0-3,6-9");
  Group("b", "4-5", "4-5", "root");
  EXPECT_EQ(WhyNot("/a", "5,11-13"),
            "CPU 12 is offline; /a allows CPUs 0-9,12 only: widen its cpuset.cpus; CPU 5 belongs "
            "to the partition of /b: write member into its cpuset.cpus.partition");
}

TEST_F(CpusetLimitsTest, MemoryNodesOfACgroupAbove) {
  Put("kubepods/cpuset.mems", "0");
  Put("kubepods/cpuset.mems.effective", "0");
  EXPECT_EQ(Limits().WhyNot("/kubepods/pod1", NodeSet{1}),
            "/kubepods allows memory nodes 0 only: widen its cpuset.mems");
}

TEST_F(CpusetLimitsTest, HierarchiesOfOldKernels) {
  std::filesystem::remove(directory_.File("mount") + "/cgroup.controllers");
  Put("cpuset/docker/cpuset.cpus", "0-3");
  EXPECT_EQ(WhyNot("/docker", "5"), "/docker allows CPUs 0-3 only: widen its cpuset.cpus");
  EXPECT_EQ(Limits().WhyNone("/docker"), "");
}

TEST_F(CpusetLimitsTest, AControllerThatIsNotEnabledIsNamed) {
  Group("kubepods", "", "0-15");
  EXPECT_EQ(Limits().WhyNone("/kubepods/pod1"), "");
  Put("kubepods/cgroup.subtree_control", "cpu memory");
  Put("kubepods/pod1/cgroup.subtree_control", "");
  EXPECT_EQ(Limits().WhyNone("/kubepods/pod1/abc"),
            "the controller cpuset is not enabled in cgroup.subtree_control of /kubepods: write "
            "+cpuset into it");
  Put("cgroup.subtree_control", "");
  EXPECT_EQ(Limits().WhyNone("/kubepods/pod1/abc"),
            "the controller cpuset is not enabled in cgroup.subtree_control of /: write +cpuset "
            "into it");
  Put("cgroup.controllers", "cpu memory");
  EXPECT_TRUE(Limits().WhyNone("/kubepods").starts_with("cgroup v2 has no controller cpuset"));
}

TEST_F(CpusetLimitsTest, ADomainThatIsInvalidIsNamed) {
  Group("pods/pod1", "", "0-15");
  Put("pods/pod1/cgroup.type", "domain invalid");
  EXPECT_EQ(Limits().WhyNone("/pods/pod1/abc"),
            "cgroup.type of /pods/pod1 is \"domain invalid\", because the cgroup above it has "
            "threaded ones: remove these");
}

// Other programs choose names and number of cgroups.
TEST_F(CpusetLimitsTest, OddTreesDoNoHarm) {
  Put("a/cpuset.cpus.partition", std::string(100'000, 'r'));
  Put("b/cpuset.cpus.partition", "root");
  Put("b/cpuset.cpus.effective", "nonsense");
  Put("c\nd/cpuset.cpus.partition", "root");
  Put("c\nd/cpuset.cpus.effective", "5");
  std::string deep = "e";
  for (int i = 0; i < 60; ++i)
    deep += "/e";
  Put(deep + "/cpuset.cpus.partition", "root");
  Put(deep + "/cpuset.cpus.effective", "6");
  for (int i = 0; i < 3000; ++i)
    std::filesystem::create_directories(directory_.File("mount") + "/many/" + std::to_string(i));
  const std::string why = WhyNot("/kubepods", "5-6");
  EXPECT_TRUE(why.starts_with("CPU 5 belongs to the partition of /c")) << why;
  EXPECT_EQ(why.find('\n'), std::string::npos) << why;
}

}  // namespace
}  // namespace resmgr
