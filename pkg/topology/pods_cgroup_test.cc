// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/pods_cgroup.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

}  // namespace
}  // namespace resmgr
