// SPDX-License-Identifier: Apache-2.0
// Another program's writes into the cgroups of real containers are found and mended, and a removal
// leaves none of our values there.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/sys/cgroups.h"
#include "pkg/sys/temp_dir.h"
#include "test/e2e/node_fixture.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;
using Names = Containerd::CgroupNames;

class AuditTest : public NodeTest, public ::testing::WithParamInterface<Names> {
 protected:
  void SetUp() override { Open({.cgroup_names = GetParam()}); }

  Json Ctl(const std::vector<std::string>& arguments) {
    const auto text = node().Ctl(arguments);
    EXPECT_TRUE(text.ok()) << Describe(text.status()) << node().RelayLog();
    return text.ok() ? Json::parse(*text) : Json();
  }
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

INSTANTIATE_TEST_SUITE_P(Containerd, AuditTest,
                         ::testing::Values(Names::kCgroupfs, Names::kSystemd),
                         [](const auto& names) {
                           return names.param == Names::kSystemd ? "Systemd" : "Cgroupfs";
                         });

}  // namespace
}  // namespace resmgr::test
