// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/cgroup_reader.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

// A folder with files as the kernel shows them.
class CgroupReaderTest : public testing::Test {
 protected:
  void Put(const std::string& path, std::string_view text) {
    const std::filesystem::path file = std::filesystem::path(mount_.path()) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
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
  const auto values = Read("/kubepods/burstable/pod1", "abc");
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->set.cpus->ToString(), "1-2");
  EXPECT_EQ(values->set.mems->ToString(), "0");
  EXPECT_EQ(values->effective_cpus->ToString(), "1");
  EXPECT_EQ(values->effective_mems->ToString(), "0");
  EXPECT_EQ(values->set.cpu_shares, 512);
  EXPECT_EQ(values->set.cpu_quota, -1);
  EXPECT_EQ(values->set.cpu_period, 100'000);
  EXPECT_EQ(values->cpu_weight, std::nullopt);
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
  const auto values = Read("kubepods-burstable-pod1.slice", "abc");
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->set.cpus, std::nullopt) << "what is empty restricts nothing";
  EXPECT_EQ(values->effective_cpus->ToString(), "0-3");
  EXPECT_EQ(values->cpu_weight, 20);
  EXPECT_EQ(values->set.cpu_quota, -1);
  EXPECT_EQ(values->set.cpu_period, 100'000);
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
  // What a container makes below its own cgroup is not another one's.
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
  const auto values = Read("/pod", "abc");
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_TRUE(values->set.empty());
  EXPECT_EQ(values->cpu_weight, std::nullopt);
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
  for (const char* const processes : {"", "0\n", "99\n", "13 12\n"}) {
    Put("kubepods/pod1/abc/cgroup.procs", processes);
    EXPECT_EQ(read().process_cpus, std::nullopt) << processes;
  }
}

}  // namespace
}  // namespace resmgr
