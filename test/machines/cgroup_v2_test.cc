// SPDX-License-Identifier: Apache-2.0
// cgroup v2 with real containers: changes of cgroups above a container, beside it and below it by
// other programs. The kernel then changes the CPUs in force without a notice.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/sys/cgroups.h"
#include "test/e2e/node_fixture.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class CgroupV2Test : public NodeTest {
 protected:
  void SetUp() override {
    if (!HasUnifiedCgroups()) GTEST_SKIP() << "this machine has cgroup v1";
    if (All().size() < 4) GTEST_SKIP() << "this machine has only " << All().size() << " CPUs";
    Open({});
  }
  void TearDown() override {
    if (!partition_.empty()) {
      Put(partition_ / "cpuset.cpus.partition", "member");
      fs::remove(partition_);
    }
    NodeTest::TearDown();
  }

  static void Put(const fs::path& file, const std::string& text) {
    std::ofstream stream(file);
    stream << text << '\n' << std::flush;
    EXPECT_TRUE(stream.good()) << file << ": " << text;
  }
  fs::path CgroupOf(const RunningPod& pod) const {
    const fs::path file = containerd().CgroupPath(pod.container_id, "cpuset.cpus");
    return file.parent_path().lexically_normal();
  }
  // Below the mount point, as messages name it.
  static std::string NameOf(const fs::path& cgroup) {
    return cgroup.string().substr(std::string("/sys/fs/cgroup").size());
  }
  // Takes this CPU, as a service with a partition of its own does.
  void TakeAsPartition(int cpu) {
    partition_ = "/sys/fs/cgroup/partition-of-others";
    fs::create_directory(partition_);
    Put(partition_ / "cpuset.cpus", std::to_string(cpu));
    Put(partition_ / "cpuset.cpus.partition", "root");
  }
  // The one drift that an audit with -repair finds again and again, and which it leaves alone.
  Json TheDrift(const RunningPod& pod) {
    Json drift;
    const size_t updates = containerd().Updates();
    for (int i = 0; i < 2; ++i) {
      const Json report = Ctl({"audit", "-repair"});
      EXPECT_EQ(report["drifted"], 1) << report;
      if (report["containers"].size() != 1) return {};
      const Json& container = report["containers"][0];
      EXPECT_EQ(container["id"], pod.container_id);
      EXPECT_EQ(container["sentAgain"], false);
      drift = container["drifts"][0];
    }
    EXPECT_EQ(containerd().Updates(), updates);
    return drift;
  }
  std::string Problems() {
    const Json status = Ctl({"status"});
    std::string text;
    for (const Json& problem : status["problems"])
      text += problem.value("message", "") + "; " + problem.value("next", "") + '\n';
    return text;
  }
  void ExpectClean() {
    const Json report = Ctl({"audit"});
    EXPECT_EQ(report["drifted"], 0) << report;
    EXPECT_EQ(report["unread"], 0) << report;
    EXPECT_EQ(Problems(), "");
  }

 private:
  fs::path partition_;
};

TEST_F(CgroupV2Test, AParentThatIsSmallerIsNamed) {
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  const RunningPod exclusive = Run(Guaranteed("exclusive", 2));
  const CpuSet own = CpuSetOf(exclusive);
  const fs::path pods = CgroupOf(exclusive).parent_path().parent_path();
  ExpectClean();

  const CpuSet less = All() - CpuSet{own.Last()};
  Put(pods / "cpuset.cpus", less.ToString());
  const std::string why =
      fmt::format("{} allows CPUs {} only: widen its cpuset.cpus", NameOf(pods), less.ToString());
  Json drift = TheDrift(exclusive);
  EXPECT_EQ(drift["where"], "effective");
  EXPECT_EQ(drift["decided"], own.ToString());
  EXPECT_EQ(drift["actual"], (own & less).ToString());
  EXPECT_EQ(drift["why"], why);
  EXPECT_THAT(Problems(), HasSubstr(why));
  const Json explained = Ctl({"explain", "exclusive"});
  ASSERT_EQ(explained.size(), 1U) << explained;
  EXPECT_THAT(explained[0].value("audit", ""), HasSubstr(why));

  // Nothing is left, and the kernel lets the container run on other containers' CPUs.
  node().watch().Remove(exclusive.container_id);
  Put(pods / "cpuset.cpus", "0");
  Json report = Ctl({"audit"});
  EXPECT_EQ(containerd().AllowedCpus(exclusive.container_id), CpuSet{0});
  EXPECT_THAT(Problems(), HasSubstr("because none of these is left"));
  EXPECT_THAT(Problems(), HasSubstr(NameOf(pods) + " allows CPU 0 only"));

  // The kernel refuses to remove a set while processes are in it.
  Put(pods / "cpuset.cpus", All().ToString());
  ExpectClean();
  EXPECT_EQ(containerd().AllowedCpus(exclusive.container_id), own);
}

TEST_F(CgroupV2Test, APartitionOfOthersIsNamed) {
  const RunningPod exclusive = Run(Guaranteed("exclusive", 2));
  const CpuSet own = CpuSetOf(exclusive);
  TakeAsPartition(own.Last());
  const std::string why = fmt::format(
      "CPU {} belongs to the partition of /partition-of-others: write member into its "
      "cpuset.cpus.partition",
      own.Last());
  const Json drift = TheDrift(exclusive);
  EXPECT_EQ(drift["actual"], (own - CpuSet{own.Last()}).ToString());
  EXPECT_EQ(drift["why"], why);
  EXPECT_THAT(Problems(), HasSubstr(why));

  // A daemon that starts now does not count with this CPU, and says why.
  Remove(exclusive);
  node().relay().Kill();
  ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
  EXPECT_THAT(Problems(), HasSubstr(why));
  const RunningPod late = Run(Guaranteed("late", 2));
  EXPECT_FALSE(CpuSetOf(late).Contains(own.Last())) << CpusOf(late);
  EXPECT_EQ(Ctl({"audit"})["drifted"], 0);
}

TEST_F(CgroupV2Test, CgroupsThatAContainerMakesAreItsOwnAffair) {
  // Threads, one of them in a cgroup with fewer CPUs.
  const RunningPod threaded = Run(Guaranteed("threaded", 2));
  const fs::path cgroup = CgroupOf(threaded);
  const CpuSet own = CpuSetOf(threaded);
  std::string process;
  std::ifstream(cgroup / "cgroup.procs") >> process;
  fs::create_directory(cgroup / "threads");
  Put(cgroup / "threads/cgroup.type", "threaded");
  Put(cgroup / "cgroup.subtree_control", "+cpuset");
  Put(cgroup / "threads/cpuset.cpus", std::to_string(own.First()));
  Put(cgroup / "threads/cgroup.threads", process);
  EXPECT_EQ(containerd().AllowedCpus(threaded.container_id), CpuSet{own.First()});
  ExpectClean();

  // All processes in a cgroup below its own, as systemd and dockerd in a container do.
  const RunningPod nested = Run(Guaranteed("nested", 2));
  const fs::path outer = CgroupOf(nested);
  const CpuSet cpus = CpuSetOf(nested);
  fs::create_directory(outer / "init");
  std::ifstream(outer / "cgroup.procs") >> process;
  Put(outer / "init/cgroup.procs", process);
  Put(outer / "cgroup.subtree_control", "+cpuset");
  Put(outer / "init/cpuset.cpus", std::to_string(cpus.First()));
  ExpectClean();

  // A value written into the container's own cgroup is found and mended.
  node().watch().Remove(nested.container_id);
  Put(outer / "cpuset.cpus", "0");
  EXPECT_EQ(Ctl({"audit", "-repair"})["drifted"], 1);
  const Status mended =
      WaitUntil("the repair", kPatience, [&] { return Ctl({"audit"})["drifted"] == 0; });
  EXPECT_TRUE(mended.ok()) << mended;
  EXPECT_EQ(TextOf(outer / "cpuset.cpus"), cpus.ToString() + "\n");
}

TEST_F(CgroupV2Test, AControllerThatIsNotEnabledIsNamed) {
  const RunningPod exclusive = Run(Guaranteed("exclusive", 2));
  const CpuSet own = CpuSetOf(exclusive);
  const fs::path pod = CgroupOf(exclusive).parent_path();
  node().watch().Remove(exclusive.container_id);
  // The pod's pause container has a cgroup beside it.
  Put(pod / "cgroup.subtree_control", "-cpuset");
  const Json drift = TheDrift(exclusive);
  EXPECT_EQ(drift["where"], "hierarchy");
  const std::string why = fmt::format(
      "the controller cpuset is not enabled in cgroup.subtree_control of {}: write +cpuset into it",
      NameOf(pod));
  EXPECT_EQ(drift["why"], why);
  EXPECT_THAT(Problems(), HasSubstr("cpuset.cpus cannot be " + own.ToString()));

  Put(pod / "cgroup.subtree_control", "+cpuset");
  EXPECT_EQ(Ctl({"audit", "-repair"})["containers"][0]["sentAgain"], true);
  const Status mended =
      WaitUntil("the repair", kPatience, [&] { return Ctl({"audit"})["drifted"] == 0; });
  EXPECT_TRUE(mended.ok()) << mended;
  EXPECT_EQ(containerd().AllowedCpus(exclusive.container_id), own);

  // The runtime's answer is "cpuset.cpus: no such file or directory".
  Put(pod / "cgroup.subtree_control", "-cpuset");
  RunningPod larger = exclusive;
  EXPECT_FALSE(node().Resize(Guaranteed("exclusive", 3), &larger).ok());
  EXPECT_TRUE(node().RelayLogs("likely cause: " + why));
  Put(pod / "cgroup.subtree_control", "+cpuset");
  ExpectOn(exclusive, own);
}

}  // namespace
}  // namespace resmgr::test
