// SPDX-License-Identifier: Apache-2.0
// Another program (koordlet, rubik) sets values in the cgroups of real containers. Our moves leave
// these in force; where they make the runtime refuse our updates, other containers start all the
// same.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/sys/cgroups.h"
#include "pkg/sys/temp_dir.h"
#include "test/e2e/node_fixture.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A memory limit on cgroup v1 and how to change it; the tests' images run there.
constexpr int64_t kMiB = int64_t{1} << 20;

class OtherManagersTest : public NodeTest {
 protected:
  void SetUp() override { Open({}); }

  static Workload Limited(const std::string& name) {
    return {.name = name,
            .qos = QosClass::kBurstable,
            .cpu_request = MilliCpu{250},
            .cpu_limit = MilliCpu{500},
            .memory_limit = Bytes{64 * kMiB}};
  }
  std::string Read(const RunningPod& pod, std::string_view file) const {
    return containerd().CgroupFile(pod.container_id, file);
  }
  // Writes as any program with root's rights can.
  void Write(const RunningPod& pod, std::string_view file, std::string_view value) {
    const std::string path = containerd().CgroupPath(pod.container_id, file);
    ASSERT_NE(path, "") << file;
    std::ofstream stream(path);
    stream << value << std::flush;
    ASSERT_TRUE(stream.good()) << path;
    ASSERT_EQ(Read(pod, file), value);
  }
  // Creates a container with an exclusive CPU, without starting it.
  std::string CreateExclusive(const std::string& name) {
    const Workload workload = Guaranteed(name, 1);
    const auto config = node().PodConfig(workload);
    const auto pod = node().client().RunPod(config);
    EXPECT_TRUE(pod.ok()) << pod.status();
    const auto id = node().client().CreateContainer(*pod, config, Node::ContainerConfig(workload));
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or("");
  }
};

TEST_F(OtherManagersTest, AMoveLeavesQuotaAndMemoryOfOthersInForce) {
  const RunningPod shared = Run(Limited("shared"));
  ASSERT_EQ(Read(shared, "cpu.cfs_quota_us"), "50000");
  Write(shared, "cpu.cfs_quota_us", "150000");
  Write(shared, "memory.memsw.limit_in_bytes", std::to_string(192 * kMiB));
  Write(shared, "memory.limit_in_bytes", std::to_string(128 * kMiB));
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  ExpectOn(shared, All() - CpuSetOf(exclusive));
  EXPECT_EQ(Read(shared, "cpu.cfs_quota_us"), "150000");
  EXPECT_EQ(Read(shared, "memory.limit_in_bytes"), std::to_string(128 * kMiB));
  EXPECT_EQ(Read(shared, "memory.memsw.limit_in_bytes"), std::to_string(192 * kMiB));
  // The value survives its next move, too, although the runtime has noted the values that were
  // sent.
  Remove(exclusive);
  ExpectOn(shared, All());
  EXPECT_EQ(Read(shared, "cpu.cfs_quota_us"), "150000");
}

// The kernel refuses a limit below the memory in use.
TEST_F(OtherManagersTest, AContainerThatUsesMoreMemoryThanItsPodAsksForIsMoved) {
  Workload hungry = Limited("hungry");
  // The kernel cannot take back the memory of dd's buffer.
  hungry.command = {"/bin/sh", "-c",
                    "while [ ! -e /tmp/go ]; do sleep 0.1; done; "
                    "exec dd if=/dev/zero of=/dev/null bs=90M"};
  const RunningPod shared = Run(hungry);
  Write(shared, "memory.memsw.limit_in_bytes", std::to_string(192 * kMiB));
  Write(shared, "memory.limit_in_bytes", std::to_string(192 * kMiB));
  const auto exec = Ok(node().client().Exec(shared.container_id, {"/bin/touch", "/tmp/go"}));
  const Status full = WaitUntil("it uses its memory", kPatience, [&] {
    return std::stoll("0" + Read(shared, "memory.usage_in_bytes")) > 80 * kMiB;
  });
  ASSERT_TRUE(full.ok()) << full;
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  ExpectOn(shared, All() - CpuSetOf(exclusive));
}

// No update of a container with cpu.idle works, since containerd writes its shares with each.
TEST_F(OtherManagersTest, AContainerThatCannotBeMovedBlocksOneStartForOneDeadline) {
  const RunningPod shared = Run(Limited("shared"));
  node().watch().Remove(shared.container_id);  // this write breaks the rules on purpose
  Write(shared, "cpu.idle", "1");
  const std::string id = CreateExclusive("exclusive");
  const Status refused = node().client().StartContainer(id);
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(refused)),
              AllOf(HasSubstr("shared may still run on its exclusive CPUs"),
                    HasSubstr("invalid argument"), HasSubstr("cpu.idle")));

  const auto begin = std::chrono::steady_clock::now();
  const Status started = node().client().StartContainer(id);
  EXPECT_TRUE(started.ok()) << started;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  const auto status = Ok(node().Ctl("status"));
  EXPECT_THAT(status, AllOf(HasSubstr("the runtime does not update"), HasSubstr("cpu.idle")));
  const auto history = Ok(node().Ctl("history"));
  EXPECT_THAT(history, HasSubstr("let through"));

  // Follows the advice of the message.
  Write(shared, "cpu.idle", "0");
  const auto own = containerd().AllowedCpus(id);
  ASSERT_TRUE(own.has_value());
  ExpectOn(shared, All() - *own);
  EXPECT_TRUE(node().RelayLogs("the runtime updates container"));
}

class WrittenCpusetTest : public OtherManagersTest {
 protected:
  void SetUp() override {
    Open({.config = "policy:\n  RefusedUpdates: write\n  StartFailurePolicy: fail\n"});
  }
};

TEST_F(WrittenCpusetTest, AContainerThatTheRuntimeCannotMoveMakesRoomAtOnce) {
  const RunningPod shared = Run(Limited("shared"));
  Write(shared, "cpu.idle", "1");
  const std::string id = CreateExclusive("exclusive");
  const auto begin = std::chrono::steady_clock::now();
  const Status started = node().client().StartContainer(id);
  EXPECT_TRUE(started.ok()) << started;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  // After the start runc is in its process for a moment.
  std::optional<CpuSet> own;
  const Status runs = WaitUntil("it runs", kPatience, [&] {
    own = containerd().AllowedCpus(id);
    return own.has_value();
  });
  ASSERT_TRUE(runs.ok()) << runs;
  EXPECT_EQ(own->size(), 1);
  EXPECT_EQ(containerd().AllowedCpus(shared.container_id), All() - *own);
  EXPECT_TRUE(node().RelayLogs("its cpuset was written into its cgroup past the runtime"));
  const auto history = Ok(node().Ctl("history"));
  EXPECT_THAT(history, HasSubstr("written"));

  // The runtime reports the former CPUs to a daemon that starts.
  node().watch().Remove(shared.container_id);  // refusals put these back for a moment
  node().relay().Kill();
  ASSERT_TRUE(node().StartRelay().ok());
  ExpectOn(shared, All() - *own);
  EXPECT_EQ(containerd().AllowedCpus(id), own);

  const auto uninstalled = Ok(node().Ctl(Node::Words{"uninstall", "-apply"}));
  EXPECT_EQ(containerd().AllowedCpus(shared.container_id), All());
  EXPECT_EQ(containerd().AllowedCpus(id), All());
}

// Another program's writes into the cgroups of real containers are found and mended, and a removal
// leaves none of our values there.

using Json = nlohmann::json;
using Names = Containerd::CgroupNames;

class AuditTest : public NodeTest, public ::testing::WithParamInterface<Names> {
 protected:
  void SetUp() override { Open({.cgroup_names = GetParam()}); }

  // Writes as any program with root's rights can.
  void Write(const RunningPod& pod, const CpuSet& cpus) {
    // The watch would report this write, which breaks the rules on purpose.
    node().watch().Remove(pod.container_id);
    std::ofstream file(containerd().CgroupPath(pod.container_id, "cpuset.cpus"));
    file << cpus.ToString() << std::flush;
    ASSERT_TRUE(file.good());
    ASSERT_EQ(CpuSetOf(pod), cpus);
  }
};

TEST_P(AuditTest, FindsAndMendsWhatAnotherProgramWroteIntoACgroup) {
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const RunningPod shared = Run(BestEffort("shared"));
  const CpuSet own = CpuSetOf(exclusive);
  Json report = Ctl({"audit"});
  EXPECT_EQ(report["checked"], 2) << report;
  EXPECT_EQ(report["containers"], Json::array());
  EXPECT_EQ(report["runtimeProblem"], "");

  Write(exclusive, All());
  report = Ctl({"audit"});
  EXPECT_EQ(report["drifted"], 1) << report;
  ASSERT_EQ(report["containers"].size(), 1U);
  EXPECT_EQ(report["containers"][0]["id"], exclusive.container_id);
  EXPECT_EQ(report["containers"][0]["drifts"], Json::array({{{"where", "cgroup"},
                                                             {"value", "cpuset.cpus"},
                                                             {"decided", own.ToString()},
                                                             {"actual", All().ToString()},
                                                             {"why", ""}}}));
  EXPECT_EQ(CpuSetOf(exclusive), All()) << "to look changes nothing";

  EXPECT_EQ(Ctl({"audit", "-repair"})["containers"][0]["sentAgain"], true);
  ExpectOn(exclusive, own);
  EXPECT_EQ(Ctl({"audit"})["drifted"], 0);
}

TEST_P(AuditTest, MendsByItselfWhereTheConfigurationSaysSo) {
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = CpuSetOf(exclusive);
  const TempDir directory;
  const std::string file = directory.File("node.yaml");
  std::ofstream(file) << "policy: {ReservedResources: {CPU: 'cpuset:0'}}\n"
                      << "audit: {Interval: 1s, Repair: true}\n";
  Ctl({"config", "set", file});
  Write(exclusive, All());
  ExpectOn(exclusive, own);
  EXPECT_TRUE(node().RelayLogs("exclusive has drifted"));
}

TEST_P(AuditTest, UninstallLeavesNoContainerBound) {
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const RunningPod shared = Run(BestEffort("shared"));
  const CpuSet own = CpuSetOf(exclusive);
  EXPECT_EQ(Ctl({"uninstall", "-dry-run"})["moves"].size(), 2U);
  EXPECT_EQ(CpuSetOf(exclusive), own);
  node().watch().Remove(exclusive.container_id);

  EXPECT_EQ(Ctl({"uninstall", "-apply"})["done"], true);
  EXPECT_EQ(CpuSetOf(exclusive), All());
  EXPECT_EQ(CpuSetOf(shared), All());
  EXPECT_FALSE(node().Deliver("Active: static\n").ok()) << "an agent brings no policy back";
  EXPECT_EQ(CpuSetOf(Run(BestEffort("late"))), All());
}

class RefusedCpusTest : public NodeTest {
 protected:
  void SetUp() override { Open({}); }
};

// On cgroup v2 the kernel takes any CPUs.
TEST_F(RefusedCpusTest, NameTheirCause) {
  if (HasUnifiedCgroups()) GTEST_SKIP() << "the kernel refuses no CPUs on cgroup v2";
  const Workload workload = Guaranteed("exclusive", 1);
  const std::string parent = node().PodConfig(workload).linux().cgroup_parent();
  // Another program made the pod's cgroup smaller, from the top.
  std::string path = "/sys/fs/cgroup/cpuset";
  std::istringstream names(parent.substr(1));
  for (std::string name; std::getline(names, name, '/');) {
    path += "/" + name;
    std::filesystem::create_directory(path);
    std::ofstream(path + "/cpuset.mems") << TheMachine().allowed_nodes().ToString();
    std::ofstream(path + "/cpuset.cpus") << (names.eof() ? CpuSet{0} : All()).ToString();
  }
  EXPECT_FALSE(node().Run(workload).ok());
  EXPECT_TRUE(node().RelayLogs(
      fmt::format("likely cause: {} allows CPU 0 only: widen its cpuset.cpus", parent)));
}

INSTANTIATE_TEST_SUITE_P(Containerd, AuditTest, ::testing::Values(Names::kSystemd),
                         [](const auto&) { return "Systemd"; });
INSTANTIATE_TEST_SUITE_P(Long, AuditTest, ::testing::Values(Names::kCgroupfs),
                         [](const auto&) { return "Cgroupfs"; });

}  // namespace
}  // namespace resmgr::test
