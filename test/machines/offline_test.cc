// SPDX-License-Identifier: Apache-2.0
// CPUs of the machine go offline and come back while containers run. Only on an emulated machine.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/node_fixture.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// A second, and what a machine that is emulated on a busy host takes to answer.
constexpr std::chrono::seconds kNoticed{10};

class OfflineTest : public NodeTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (All().size() < 16) GTEST_SKIP() << "this machine has only " << All().size() << " CPUs";
    if (!std::filesystem::exists(OnlineFile(1))) GTEST_SKIP() << "its CPUs stay online";
    Open({.policy = GetParam()});
  }
  void TearDown() override {
    while (!off_.empty())
      PutBack(off_.First());
    GiveBackToParents();
    NodeTest::TearDown();
  }

  static std::string OnlineFile(int cpu) {
    return fmt::format("/sys/devices/system/cpu/cpu{}/online", cpu);
  }
  static void Write(const std::string& path, std::string_view text) {
    std::ofstream file(path);
    file << text << std::flush;
    EXPECT_TRUE(file.good()) << path;
  }
  static bool IsV1() { return std::filesystem::exists("/sys/fs/cgroup/cpuset"); }

  void TakeOff(int cpu) {
    off_.Add(cpu);
    Write(OnlineFile(cpu), "0");
  }
  void PutBack(int cpu) {
    off_.Remove(cpu);
    Write(OnlineFile(cpu), "1");
  }
  // What an administrator has to do under cgroup v1, from the top to the bottom.
  void GiveBackToParents() const {
    if (!IsV1()) return;
    const std::filesystem::path mount = "/sys/fs/cgroup/cpuset";
    const std::string online = (All() - off_).ToString();
    // The kernel does so after the CPU is online.
    const Status root = WaitUntil("the root has the CPUs", kPatience, [&] {
      std::string cpus;
      std::getline(std::ifstream(mount / "cpuset.cpus"), cpus);
      return cpus == online;
    });
    EXPECT_TRUE(root.ok());
    for (std::filesystem::recursive_directory_iterator at(mount), end; at != end; ++at) {
      if (!at->is_directory()) continue;
      // Containers are the daemon's business.
      const bool in_pod = at->path().parent_path().filename().string().starts_with("pod");
      if (in_pod) continue;
      std::ofstream(at->path() / "cpuset.cpus") << online << std::flush;
    }
  }

  Json StatusJson() {
    const StatusOr<std::string> output = node().Ctl("status");
    EXPECT_TRUE(output.ok()) << Describe(output.status()) << node().RelayLog();
    return Json::parse(output.value_or("null"), nullptr, /*allow_exceptions=*/false);
  }
  std::string Problems() { return StatusJson().value("problems", Json::array()).dump(); }
  void ExpectProblem(const std::string& text) {
    const Status said =
        WaitUntil(text, kNoticed, [&] { return Problems().find(text) != std::string::npos; });
    EXPECT_TRUE(said.ok()) << Problems() << node().RelayLog();
  }
  void ExpectNoProblem() {
    const Status gone =
        WaitUntil("no problem is left", kPatience, [&] { return Problems() == "[]"; });
    EXPECT_TRUE(gone.ok()) << Problems() << node().RelayLog();
  }
  // As the kernel has it, which tells of offline CPUs too.
  CpuSet RunsOn(const RunningPod& pod) {
    return containerd().AwaitAllowedCpus(pod.container_id).value_or(CpuSet());
  }
  void ExpectSize(const RunningPod& pod, int size) {
    const Status sized = WaitUntil("the size", kPatience, [&] {
      return CpuSetOf(pod).size() == size && !CpuSetOf(pod).Intersects(off_);
    });
    EXPECT_TRUE(sized.ok()) << pod.workload.name << " is on " << CpusOf(pod) << node().RelayLog();
    EXPECT_EQ(RunsOn(pod), CpuSetOf(pod));
  }
  void ExpectWithout(const RunningPod& pod, int cpu) {
    const Status left =
        WaitUntil("it leaves the CPU", kPatience, [&] { return !CpuSetOf(pod).Contains(cpu); });
    EXPECT_TRUE(left.ok()) << pod.workload.name << " is on " << CpusOf(pod);
    EXPECT_FALSE(CpuSetOf(pod).empty());
  }

 private:
  CpuSet off_;
};

TEST_P(OfflineTest, ContainersLeaveACpuThatGoesOfflineAndUseItAgain) {
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  const RunningPod exclusive = Run(Guaranteed("exclusive", 2));
  const RunningPod other = Run(Guaranteed("other", 1));
  const CpuSet own = CpuSetOf(exclusive);
  const CpuSet others = CpuSetOf(other);
  ASSERT_EQ(own.size(), 2);
  const CpuSet shares = CpuSetOf(shared);
  const int lost = own.First();

  TakeOff(lost);
  ExpectProblem(fmt::format("CPU {} is offline", lost));
  ExpectSize(exclusive, 2);
  EXPECT_TRUE(CpuSetOf(exclusive).Intersects(own)) << "it keeps what it can";
  EXPECT_TRUE(node().RelayLogs(fmt::format("CPU {} went offline", lost)));
  EXPECT_EQ(CpuSetOf(other), others);
  ExpectWithout(shared, lost);
  const RunningPod late = Run(Guaranteed("late", 1));
  ExpectSize(late, 1);
  Remove(late);
  const auto places = PlacesOf(shared, exclusive, other);

  PutBack(lost);
  if (IsV1()) {
    ExpectProblem("a cgroup above it may not use these CPUs");
    GiveBackToParents();
  }
  ExpectNoProblem();
  EXPECT_EQ(PlacesOf(exclusive, other)["exclusive"], places.at("exclusive")) << "it stays";
  // Its former CPU is shared now.
  const Status back =
      WaitUntil("it is shared", kPatience, [&] { return CpuSetOf(shared).Contains(lost); });
  EXPECT_TRUE(back.ok() || !shares.Intersects(own)) << CpusOf(shared) << node().RelayLog();
}

TEST_P(OfflineTest, ARestartWhileACpuIsOfflineMovesNobody) {
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  const RunningPod exclusive = Run(Guaranteed("exclusive", 2));
  const RunningPod other = Run(Guaranteed("other", 1));
  const int lost = CpuSetOf(exclusive).First();
  const CpuSet others = CpuSetOf(other);
  node().relay().Kill();
  TakeOff(lost);
  ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
  ExpectSize(exclusive, 2);
  EXPECT_EQ(CpuSetOf(other), others);
  EXPECT_EQ(StatusJson().value("offline", ""), std::to_string(lost));
  ExpectWithout(shared, lost);
  const auto places = PlacesOf(shared, exclusive, other);
  node().relay().Kill();
  ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
  ExpectNoProblem();
  EXPECT_EQ(PlacesOf(shared, exclusive, other), places);
  EXPECT_THAT(node().WholeRelayLog(), Not(HasSubstr("written on another machine")));

  PutBack(lost);
  GiveBackToParents();
  ExpectProblem("restart the daemon");
  node().relay().Kill();
  ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
  ExpectNoProblem();
  EXPECT_EQ(PlacesOf(exclusive, other)["exclusive"], places.at("exclusive"));
}

// Without a shared container: one whose last CPU goes offline runs on those of its parent cgroup,
// exclusive ones too, until the daemon has noticed.
TEST_P(OfflineTest, AContainerWithFewerCpusGetsThemBack) {
  // CPU 0 is reserved, and one is left.
  const int size = All().size() - 2;
  const RunningPod large = Run(Guaranteed("large", size));
  const CpuSet own = CpuSetOf(large);
  ASSERT_EQ(own.size(), size);
  const CpuSet rest = Unreserved() - own;
  TakeOff(rest.First());
  ExpectProblem(fmt::format("CPU {} is offline", rest.First()));
  const int lost = own.First();
  TakeOff(lost);
  ExpectSize(large, size - 1);
  ExpectProblem("large");
  EXPECT_FALSE(node().Run(Guaranteed("too-large", 2)).ok());
  PutBack(lost);
  GiveBackToParents();
  ExpectSize(large, size);
  PutBack(rest.First());
  GiveBackToParents();
  ExpectNoProblem();
}

INSTANTIATE_TEST_SUITE_P(Relay, OfflineTest,
                         ::testing::Values("static", "static-plus", "topology-aware"),
                         [](const auto& param_info) {
                           std::string name;
                           for (const char letter : std::string(param_info.param))
                             if (letter != '-') name += letter;
                           return name;
                         });

}  // namespace
}  // namespace resmgr::test
