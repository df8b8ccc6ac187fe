// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/cpuset_limits.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

// A machine's cgroups as files.
class PodsCgroupTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file(directory_.File("root") + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  void Unified(const std::string& path, const std::string& cpus, const std::string& mems) {
    Write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu");
    Write("/sys/fs/cgroup" + path + "/cpuset.cpus.effective", cpus);
    Write("/sys/fs/cgroup" + path + "/cpuset.mems.effective", mems);
  }
  void Legacy(const std::string& path, const std::string& cpus, const std::string& mems) {
    Write("/sys/fs/cgroup/cpuset" + path + "/cpuset.effective_cpus", cpus);
    Write("/sys/fs/cgroup/cpuset" + path + "/cpuset.effective_mems", mems);
  }
  CgroupPlaces Places(const std::string& pods = "") const {
    return {.pods = pods, .root = directory_.File("root")};
  }
  // "/kubepods 0-3 0"
  std::string Pods(const std::string& pods = "") const {
    const CgroupSets sets = ReadPodsCgroup(Places(pods));
    return sets.name + " " + sets.cpus.ToString() + " " + sets.mems.ToString();
  }
  std::string Own(const std::string& lines) {
    Write("/proc/self/cgroup", lines);
    const auto sets = ReadOwnCgroup(Places());
    return sets ? sets->name + " " + sets->cpus.ToString() + " " + sets->mems.ToString() : "none";
  }

  TempDir directory_;
};

TEST_F(PodsCgroupTest, ThatOfKubeletsIsFound) {
  Unified("", "0-15", "0-1");
  EXPECT_EQ(Pods(), "/ 0-15 0-1") << "there is none yet: what the machine has";
  Unified("/kubepods", "2-15", "0-1");
  EXPECT_EQ(Pods(), "/kubepods 2-15 0-1");
  Unified("/kubepods.slice", "4-15", "1");
  EXPECT_EQ(Pods(), "/kubepods.slice 4-15 1");
}

TEST_F(PodsCgroupTest, AnotherOneMayBeNamed) {
  Unified("", "0-15", "0-1");
  Unified("/a.slice", "0-7", "0");
  Unified("/kubepods.slice", "0-15", "0-1");
  EXPECT_EQ(Pods("a-kubepods.slice"), "/a.slice 0-7 0") << "the nearest one that is there";
  Unified("/a.slice/a-kubepods.slice", "0-3", "0");
  EXPECT_EQ(Pods("a-kubepods.slice"), "/a.slice/a-kubepods.slice 0-3 0");
  EXPECT_EQ(Pods("/a.slice/a-kubepods.slice"), "/a.slice/a-kubepods.slice 0-3 0");
}

TEST_F(PodsCgroupTest, ThatOfAKubeletWithACgroupRootIsFound) {
  Unified("", "0-9", "0-1");
  Unified("/system.slice/a.service", "0-9", "0-1");
  Unified("/a.slice/a-b.slice/a-b-kubepods.slice", "0-7", "0");
  EXPECT_EQ(Pods(), "/a.slice/a-b.slice/a-b-kubepods.slice 0-7 0");
  Unified("/c/kubepods", "0-3", "0");
  EXPECT_EQ(Pods(), "/c/kubepods 0-3 0") << "the one nearest to the root";
  Unified("/d/kubepods", "0-1", "0");
  EXPECT_EQ(Pods(), "/ 0-9 0-1") << "it is not known which";
  Unified("/kubepods.slice", "0-15", "0-1");
  EXPECT_EQ(Pods(), "/kubepods.slice 0-15 0-1");
}

// A node in a container, as kind makes them.
TEST_F(PodsCgroupTest, AKubeletInAContainerIsNotThisNodes) {
  Unified("", "0-9", "0-1");
  const std::string id(64, 'a');
  Unified("/system.slice/docker-" + id + ".scope/kubelet.slice/kubelet-kubepods.slice", "0-3", "0");
  Unified("/docker/" + id + "/kubelet/kubepods", "0-3", "0");
  EXPECT_EQ(Pods(), "/ 0-9 0-1");
}

TEST_F(PodsCgroupTest, PartitionsBelowACgroupRootAreOfPods) {
  Write("/sys/devices/system/cpu/online", "0-15");
  Unified("", "0-9", "0");
  Unified("/root/kubepods", "0-9", "0");
  Write("/sys/fs/cgroup/root/kubepods/cpuset.cpus.exclusive.effective", "10-15");
  Unified("/root/kubepods/pod1", "10-15", "0");
  Write("/sys/fs/cgroup/root/kubepods/pod1/cpuset.cpus.partition", "isolated");
  EXPECT_EQ(Pods(), "/root/kubepods 0-15 0");
  EXPECT_EQ(ReadPodsCgroup(Places()).why, "");
}

TEST_F(PodsCgroupTest, ACgroupThatDoesNotTellIsAsTheOneAbove) {
  Unified("", "0-15", "0-1");
  Unified("/kubepods", "", "1");
  EXPECT_EQ(Pods(), "/kubepods 0-15 1");
  Write("/sys/fs/cgroup/kubepods/cpuset.cpus.effective", "no list");
  EXPECT_EQ(Pods(), "/kubepods 0-15 1");
}

TEST_F(PodsCgroupTest, PartitionsOfContainersAreOfPods) {
  Unified("/kubepods", "0-9", "0");
  Write("/sys/fs/cgroup/kubepods/cpuset.cpus.exclusive.effective", "10-15");
  EXPECT_EQ(Pods(), "/kubepods 0-15 0");
}

TEST_F(PodsCgroupTest, WhatWithholdsCpusIsNamed) {
  Write("/sys/devices/system/cpu/online", "0-7");
  Unified("", "0-5", "0");
  Unified("/kubepods", "0-5", "0");
  Write("/sys/fs/cgroup/foo/cpuset.cpus.effective", "6-7");
  Write("/sys/fs/cgroup/foo/cpuset.cpus.partition", "root");
  const CgroupSets pods = ReadPodsCgroup(Places());
  EXPECT_EQ(pods.why,
            "CPUs 6-7 belong to the partition of /foo: write member into its "
            "cpuset.cpus.partition");
  const Machine whole = *LoadMachine("synthetic:package:2 numa:1 core:4 pu:1");
  const Machine rest = *Machine::Create(
      {.cpus = whole.cpus(), .nodes = whole.nodes(), .allowed = CpuSet::Range(0, 5)});
  EXPECT_THAT(CgroupDifferences(rest, pods, std::nullopt),
              ElementsAre(HasSubstr("containers are placed on the others (CPUs 6-7 belong to")));
  Unified("/kubepods", "0-7", "0");
  EXPECT_EQ(ReadPodsCgroup(Places()).why, "");
}

TEST_F(PodsCgroupTest, HierarchiesOfOldKernelsAreRead) {
  Legacy("", "0-15", "0-1");
  EXPECT_EQ(Pods(), "/ 0-15 0-1");
  Write("/sys/fs/cgroup/cpuset/kubepods/cpuset.cpus", "8-15");
  Write("/sys/fs/cgroup/cpuset/kubepods/cpuset.mems", "1");
  EXPECT_EQ(Pods(), "/kubepods 8-15 1");
}

TEST_F(PodsCgroupTest, WithoutCgroupsNothingIsTold) {
  const CgroupSets sets = ReadPodsCgroup(Places());
  EXPECT_TRUE(sets.cpus.empty());
  EXPECT_TRUE(sets.mems.empty());
}

TEST_F(PodsCgroupTest, TheOwnOneIsReadWhereItSaysSomething) {
  Unified("", "0-15", "0-1");
  Unified("/system.slice", "0-1", "0");
  EXPECT_EQ(Own("0::/system.slice/cri-resmgr.service"), "/system.slice 0-1 0");
  EXPECT_EQ(Own("0::/"), "none") << "a container's";
  EXPECT_EQ(Own("0::/../other"), "none");
  EXPECT_EQ(Own("0::/kubepods.slice/kubepods-pod1.slice/a.scope"), "none") << "placed by us";
  EXPECT_EQ(Own("no line"), "none");
}

TEST_F(PodsCgroupTest, TheOwnOneOfOldKernelsIsThatOfTheCpusets) {
  Legacy("/b", "0-1", "0");
  EXPECT_EQ(Own("9:cpu,cpuacct:/a\n8:cpuset:/b\n0::/c"), "/b 0-1 0");
}

TEST_F(PodsCgroupTest, DifferencesAreTold) {
  const Machine whole = *LoadMachine("synthetic:package:2 numa:1 core:4 pu:1");
  const CgroupSets pods{.name = "/kubepods", .cpus = whole.online(), .mems = whole.node_ids()};
  EXPECT_THAT(CgroupDifferences(whole, pods, std::nullopt), IsEmpty());
  EXPECT_THAT(CgroupDifferences(whole, pods, pods), IsEmpty());
  const CgroupSets service{.name = "/system.slice", .cpus = CpuSet{0, 1}, .mems = NodeSet{0}};
  EXPECT_THAT(CgroupDifferences(whole, pods, service),
              ElementsAre("the cgroup of this process (/system.slice) may not use CPUs 2-7 and "
                          "memory nodes 1, but that of pods (/kubepods) may: containers are placed "
                          "there as well"));
  Machine::Parts parts{
      .cpus = whole.cpus(), .nodes = whole.nodes(), .allowed = CpuSet::Range(0, 3)};
  const Machine half = *Machine::Create(std::move(parts));
  EXPECT_THAT(CgroupDifferences(half, {.name = "/kubepods", .cpus = half.allowed(), .mems = {}},
                                std::nullopt),
              ElementsAre(HasSubstr("the cgroup of pods (/kubepods) may not use CPUs 4-7 of this "
                                    "machine")));
}

// The kernel's cpusets hold only nodes that have memory.
TEST_F(PodsCgroupTest, NodesWithoutMemoryAreNoDifference) {
  const Machine whole = *LoadMachine("synthetic:package:2 numa:1 core:4 pu:1");
  std::vector<NumaNode> nodes = whole.nodes();
  nodes[1].memory = Bytes{};
  const Machine unknown =
      *Machine::Create({.cpus = whole.cpus(), .nodes = nodes, .allowed = whole.online()});
  const CgroupSets pods{.name = "/kubepods", .cpus = whole.online(), .mems = NodeSet{0}};
  EXPECT_THAT(CgroupDifferences(unknown, pods, pods), IsEmpty());
  nodes[1].allowed = false;
  const Machine known =
      *Machine::Create({.cpus = whole.cpus(), .nodes = nodes, .allowed = whole.online()});
  EXPECT_THAT(CgroupDifferences(known, pods, pods), IsEmpty());
}

}  // namespace
}  // namespace resmgr
