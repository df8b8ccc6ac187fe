// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/cgroup_reader.h"

#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;

// A folder with files as the kernel shows them.
class CgroupReaderTest : public testing::Test {
 protected:
  void Put(const std::string& path, std::string_view text) const { mount_.Put(path, text); }
  StatusOr<CgroupValues> Read(std::string_view parent, std::string_view id) const {
    return CgroupReader(mount_.path()).Read(parent, id);
  }
  static std::string CpusOf(const StatusOr<CgroupValues>& values) {
    if (!values.ok()) return std::string(Message(values.status()));
    return values->set.cpus ? values->set.cpus->ToString() : "none";
  }

  TempDir mount_;
};

TEST_F(CgroupReaderTest, ReadsTheHierarchiesOfVersionOne) {
  const std::string name = "kubepods/burstable/pod1/abc";
  Put("cpuset/" + name + "/cpuset.cpus", "1-2\n");
  Put("cpuset/" + name + "/cpuset.mems", "0\n");
  Put("cpuset/" + name + "/cpuset.effective_cpus", "1\n");
  Put("cpuset/" + name + "/cpuset.effective_mems", "0\n");
  Put("cpu/" + name + "/cpu.shares", "512\n");
  Put("cpu/" + name + "/cpu.cfs_quota_us", "-1\n");
  Put("cpu/" + name + "/cpu.cfs_period_us", "100000\n");
  const auto values = Must(Read("/kubepods/burstable/pod1", "abc"));
  EXPECT_EQ(values.set.cpus->ToString(), "1-2");
  EXPECT_EQ(values.set.mems->ToString(), "0");
  EXPECT_EQ(values.effective_cpus->ToString(), "1");
  EXPECT_EQ(values.effective_mems->ToString(), "0");
  EXPECT_EQ(values.set.cpu_shares, 512);
  EXPECT_EQ(values.set.cpu_quota, -1);
  EXPECT_EQ(values.set.cpu_period, 100'000);
  EXPECT_EQ(values.cpu_weight, std::nullopt);
}

TEST_F(CgroupReaderTest, ReadsVersionTwoWithSystemdSlices) {
  Put("cgroup.controllers", "cpuset cpu\n");
  const std::string name =
      "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
      "cri-containerd-abc.scope";
  Put(name + "/cpuset.cpus", "\n");
  Put(name + "/cpuset.cpus.effective", "0-3\n");
  Put(name + "/cpu.weight", "20\n");
  Put(name + "/cpu.max", "max 100000\n");
  const auto values = Must(Read("kubepods-burstable-pod1.slice", "abc"));
  EXPECT_EQ(values.set.cpus, std::nullopt) << "what is empty restricts nothing";
  EXPECT_EQ(values.effective_cpus->ToString(), "0-3");
  EXPECT_EQ(values.cpu_weight, 20);
  EXPECT_EQ(values.set.cpu_quota, -1);
  EXPECT_EQ(values.set.cpu_period, 100'000);
  Put(name + "/cpu.max", "5000 20000\n");
  EXPECT_EQ(Read("kubepods-burstable-pod1.slice", "abc")->set.cpu_quota, 5'000);
}

TEST_F(CgroupReaderTest, TakesTheContainersAndNotItsMonitors) {
  Put("cgroup.controllers", "");
  Put("pod/crio-conmon-abc.scope/cpuset.cpus", "0");
  Put("pod/crio-abc.scope/cpuset.cpus", "1");
  Put("pod/crio-xabc.scope/cpuset.cpus", "2");
  EXPECT_EQ(CpusOf(Read("/pod", "abc")), "1");
  EXPECT_EQ(CpusOf(Read("pod", "bc")), "there is no cgroup of bc below pod in " + mount_.path());
}

TEST_F(CgroupReaderTest, FindsSlicesOfRuntimesThatDoNotGoBySystemd) {
  Put("cpuset/pods-pod1.slice:cri-containerd:abc/cpuset.cpus", "1");
  EXPECT_EQ(CpusOf(Read("pods-pod1.slice", "abc")), "1");
}

// Runtimes have a default then.
TEST_F(CgroupReaderTest, WithoutAParentTheDefaultOfTheRuntimeIsFound) {
  const std::string id(64, 'a');
  const std::string other(64, 'b');
  Put("cpuset/docker/" + id + "/cpuset.cpus", "1");
  EXPECT_EQ(CpusOf(Read("", id)), "1");
  Put("cpuset/system.slice/docker-" + other + ".scope/cpuset.cpus", "2");
  EXPECT_EQ(CpusOf(Read("", other)), "2");
  // A cgroup that a container makes below its own is not another container's.
  const std::string third(64, 'c');
  Put("cpuset/docker/" + id + "/" + third + "/cpuset.cpus", "3");
  EXPECT_FALSE(Read("", third).ok());
  Put("cpuset/by/the/configuration/" + third + "/cpuset.cpus", "4");
  EXPECT_EQ(CpusOf(Read("", third)), "4");
}

TEST_F(CgroupReaderTest, FilesThatAreOddAreNotRead) {
  Put("cgroup.controllers", "");
  Put("pod/abc/cpuset.cpus", "zero");
  Put("pod/abc/cpu.max", "");
  Put("pod/abc/cpu.weight", std::string(100'000, '1'));
  const auto values = Must(Read("/pod", "abc"));
  EXPECT_TRUE(values.set.empty());
  EXPECT_EQ(values.cpu_weight, std::nullopt);
}

TEST_F(CgroupReaderTest, LooksNowhereElse) {
  Put("cgroup.controllers", "");
  Put("pod/abc/cpuset.cpus", "1");
  using namespace std::string_view_literals;
  for (const std::string_view parent : {"/pod/../pod"sv, ".."sv, "/p\0d"sv})
    EXPECT_EQ(Read(parent, "abc").status().code(), StatusCode::kInvalidArgument) << parent;
  for (const std::string_view id : {"", "../pod", "a/b", ".."})
    EXPECT_EQ(Read("/pod", id).status().code(), StatusCode::kInvalidArgument) << id;
}

TEST_F(CgroupReaderTest, ReadsTheAffinityOfTheFirstProcessAndOfTheOneThatStartedIt) {
  Put("cgroup.controllers", "cpuset cpu\n");
  Put("kubepods/pod1/abc/cpuset.cpus", "1-2\n");
  Put("kubepods/pod1/abc/cgroup.procs", "12\n13\n");
  Put("proc/12/status", "Name:\tapp\nPPid:\t7\nCpus_allowed:\t2\nCpus_allowed_list:\t1\n");
  Put("proc/7/status", "Name:\tshim\nPPid:\t1\nCpus_allowed_list:\t0-1\nMems_allowed:\t1\n");
  const auto read = [this] {
    return *CgroupReader(mount_.path(), mount_.File("proc")).Read("/kubepods/pod1", "abc");
  };
  EXPECT_EQ(read().process_cpus->ToString(), "1");
  EXPECT_EQ(read().parent_cpus->ToString(), "0-1");
  std::string many;
  for (int process = 12; process < 20'000; ++process)
    many += fmt::format("{}\n", process);
  Put("kubepods/pod1/abc/cgroup.procs", many);
  EXPECT_EQ(read().process_cpus->ToString(), "1");
  for (const char* const processes : {"", "0\n", "99\n", "13 12\n"}) {
    Put("kubepods/pod1/abc/cgroup.procs", processes);
    EXPECT_EQ(read().process_cpus, std::nullopt) << processes;
  }
}

// Paths of the drivers cgroupfs and systemd.
TEST_F(CgroupReaderTest, FindsOutWhatLeavesLess) {
  for (const auto& [parent, path, above] :
       {std::tuple("/kubepods/burstable/pod1", "kubepods/burstable/pod1/abc", "kubepods"),
        {"kubepods-burstable-pod1.slice",
         "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
         "cri-containerd-abc.scope",
         "kubepods.slice"}}) {
    Put("cgroup.controllers", "cpuset cpu\n");
    Put(fmt::format("{}/cpuset.cpus", above), "0-4\n");
    Put(fmt::format("{}/cpuset.cpus.effective", above), "0-4\n");
    Put(fmt::format("{}/cpuset.mems", above), "1\n");
    Put(fmt::format("{}/cpuset.mems.effective", above), "1\n");
    Put(fmt::format("{}/cpuset.cpus", path), "4-5\n");
    Put(fmt::format("{}/cpuset.cpus.effective", path), "4\n");
    Put(fmt::format("{}/cpuset.mems", path), "0-1\n");
    Put(fmt::format("{}/cpuset.mems.effective", path), "1\n");
    const CgroupReader reader(mount_.path(), mount_.File("proc"), mount_.File("online"));
    CpusetLimits limits = reader.Limits();
    const auto values = Must(reader.Read(parent, "abc", &limits));
    EXPECT_EQ(values.why_fewer_cpus,
              fmt::format("/{} allows CPUs 0-4 only: widen its cpuset.cpus", above));
    EXPECT_EQ(values.why_fewer_mems,
              fmt::format("/{} allows memory nodes 1 only: widen its cpuset.mems", above));
    EXPECT_EQ(values.why_no_cpuset, "");
  }
}

TEST_F(CgroupReaderTest, FindsOutWhatLeavesLessOnVersionOne) {
  Put("cpuset/kubepods/cpuset.cpus", "0-4\n");
  Put("cpuset/kubepods/pod1/abc/cpuset.cpus", "4-5\n");
  Put("cpuset/kubepods/pod1/abc/cpuset.effective_cpus", "4\n");
  const CgroupReader reader(mount_.path(), mount_.File("proc"), mount_.File("online"));
  CpusetLimits limits = reader.Limits();
  EXPECT_EQ(reader.Read("/kubepods/pod1", "abc", &limits)->why_fewer_cpus,
            "/kubepods allows CPUs 0-4 only: widen its cpuset.cpus");
}

TEST_F(CgroupReaderTest, FindsOutThatTheControllerIsNotEnabled) {
  Put("cgroup.controllers", "cpuset cpu\n");
  Put("cgroup.subtree_control", "cpuset cpu\n");
  Put("kubepods/cgroup.subtree_control", "cpu\n");
  Put("kubepods/abc/cpu.weight", "39\n");
  Put("kubepods/abc/cpu.idle", "0\n");
  const CgroupReader reader(mount_.path());
  CpusetLimits limits = reader.Limits();
  const auto values = Must(reader.Read("/kubepods", "abc", &limits));
  EXPECT_EQ(values.why_no_cpuset,
            "the controller cpuset is not enabled in cgroup.subtree_control of /kubepods: write "
            "+cpuset into it");
  EXPECT_EQ(values.cpu_weight, 39) << "the rest is compared all the same";
}

// systemd or dockerd in a container: cgroups below its own may have fewer CPUs, also as partitions.
TEST_F(CgroupReaderTest, WhatAContainerMakesBelowItsOwnCgroupIsItsOwnAffair) {
  Put("cgroup.controllers", "cpuset cpu\n");
  Put("pod/abc/cpuset.cpus", "1-4\n");
  Put("pod/abc/cpuset.cpus.effective", "1-2\n");
  Put("pod/abc/cpuset.cpus.exclusive.effective", "3-4\n");
  Put("pod/abc/cgroup.procs", "");
  Put("pod/abc/docker/xyz/cpuset.cpus", "1\n");
  Put("pod/abc/init/cpuset.cpus", "3-4\n");
  Put("pod/abc/init/cpuset.cpus.partition", "root\n");
  const auto values = Read("/pod", "abc");
  EXPECT_EQ(values->set.cpus->ToString(), "1-4");
  EXPECT_EQ(values->effective_cpus->ToString(), "1-4");
}

// The container's own cgroup lists all processes of its threaded ones.
TEST_F(CgroupReaderTest, ThreadsWithFewerCpusAreNoAffinity) {
  Put("cgroup.controllers", "cpuset cpu\n");
  Put("pod/abc/cpuset.cpus", "1-2\n");
  Put("pod/abc/cgroup.procs", "12\n");
  Put("pod/abc/threads/cpuset.cpus", "1\n");
  Put("proc/12/status", "Name:\tapp\nPPid:\t7\nCpus_allowed_list:\t1\n");
  Put("proc/7/status", "Name:\tshim\nPPid:\t1\nCpus_allowed_list:\t0-1\n");
  const auto affinity = [this] {
    return CgroupReader(mount_.path(), mount_.File("proc")).Read("/pod", "abc")->process_cpus;
  };
  Put("pod/abc/cgroup.type", "domain\n");
  EXPECT_NE(affinity(), std::nullopt);
  Put("pod/abc/cgroup.type", "domain threaded\n");
  EXPECT_EQ(affinity(), std::nullopt);
}

constexpr int64_t kMiB = int64_t{1} << 20;

class MemoryPlacesTest : public testing::Test {
 protected:
  void Put(const std::string& path, std::string_view text) const { mount_.Put(path, text); }
  std::string Elsewhere(const NodeSet& nodes) const {
    return MemoryElsewhere(CgroupReader(mount_.path()),
                           {.cgroup_parent = "/kubepods/pod1", .id = "abc", .nodes = nodes});
  }

  TempDir mount_;
};

TEST_F(MemoryPlacesTest, VersionOneCountsPagesAndMovesNone) {
  Put("cpuset/kubepods/pod1/abc/cpuset.mems", "2\n");
  const int64_t pages = 96 * kMiB / ::sysconf(_SC_PAGESIZE);
  Put("memory/kubepods/pod1/abc/memory.numa_stat",
      fmt::format("total={0} N0=70000 N1={0} N2=1\nfile=70000 N0=70000 N1=0 N2=0\n"
                  "anon={0} N0=0 N1={0} N2=1\nunevictable=0 N0=0 N1=0 N2=0\n"
                  "hierarchical_anon={0} N0=9999 N1=9999 N2=9999\n",
                  pages));
  EXPECT_EQ(Elsewhere({2}), "96 MiB on memory node 1 stays there: cgroup v1 moves no memory");
  EXPECT_EQ(Elsewhere({1}), "") << "a page is nothing";
}

TEST_F(MemoryPlacesTest, VersionTwoCountsBytes) {
  Put("cgroup.controllers", "cpuset memory\n");
  Put("kubepods/pod1/abc/memory.numa_stat",
      "anon N0=2097152 N1=100663296 N2=0\nfile N0=1 N1=1 N2=1\nanon_thp N0=0 N1=50331648 N2=0\n");
  EXPECT_EQ(Elsewhere({0, 1}), "");
  EXPECT_EQ(Elsewhere({2}),
            "2 MiB on memory node 0, 96 MiB on memory node 1: the kernel has not moved it");
}

TEST_F(MemoryPlacesTest, WhatTheKernelDoesNotCountIsNotTold) {
  EXPECT_EQ(Elsewhere({0}), "") << "no cgroup";
  Put("cgroup.controllers", "cpuset memory\n");
  Put("kubepods/pod1/abc/cpuset.mems", "0\n");
  EXPECT_EQ(Elsewhere({0}), "") << "no file";
  Put("kubepods/pod1/abc/memory.numa_stat", "anon Nx=1 N=2 N-1=4194304 N3 N99999999=4194304\nanon");
  EXPECT_EQ(Elsewhere({0}), "");
}

}  // namespace
}  // namespace resmgr
