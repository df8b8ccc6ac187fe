// SPDX-License-Identifier: Apache-2.0
// CPUs of the machine go offline and come back while containers run. Only on an emulated machine.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/machines/machine_fixture.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// One second, plus the response time of an emulated machine on a busy host.
constexpr std::chrono::seconds kNoticed{10};

class OfflineTest : public MachineTest {
 protected:
  void SetUp() override {
    if (All().size() < 16) GTEST_SKIP() << "this machine has only " << All().size() << " CPUs";
    if (!std::filesystem::exists(OnlineFile(1))) GTEST_SKIP() << "its CPUs stay online";
    ASSERT_NO_FATAL_FAILURE(OpenFixed());
    shared_ = Run(Burstable("shared", MilliCpu{300}));
    whole_ = CpuSetOf(shared_);
    exclusive_ = Run(Guaranteed("exclusive", 2));
    other_ = Add(exclusive_, Guaranteed("other", 1));
    ASSERT_EQ(CpuSetOf(exclusive_).size(), 2);
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
  // The steps of an administrator under cgroup v1, from the top to the bottom.
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

  std::string Problems() { return Ctl({"status"}).value("problems", Json::array()).dump(); }
  void ExpectProblem(const std::string& text) {
    const Status said =
        WaitUntil(text, kNoticed, [&] { return Problems().find(text) != std::string::npos; });
    EXPECT_TRUE(said.ok()) << Problems() << node().RelayLog();
  }
  // A refused update is reported for an hour, and an emulated machine has much to do on all CPUs.
  void ExpectNoProblem() {
    const Status gone = WaitUntil("no problem is left", kPatience, [&] {
      const Json problems = Ctl({"status"}).value("problems", Json::array());
      return std::ranges::all_of(problems, [](const Json& problem) {
        return problem["kind"] == "refused" || problem["kind"] == "pressure";
      });
    });
    EXPECT_TRUE(gone.ok()) << Problems() << node().RelayLog();
  }
  // The CPUs on which the kernel lets the process run.
  CpuSet RunsOn(const RunningPod& pod) {
    return containerd().AwaitAllowedCpus(pod.container_id).value_or(CpuSet());
  }
  void ExpectSize(const RunningPod& pod, int size) {
    // Read once: while it moves, it may run on its former CPUs.
    const Status sized = WaitUntil("the size", kPatience, [&] {
      const CpuSet now = CpuSetOf(pod);
      return now.size() == size && !now.Intersects(off_);
    });
    EXPECT_TRUE(sized.ok()) << pod.workload.name << " is on " << CpusOf(pod) << node().RelayLog();
    const Status runs =
        WaitUntil("it runs there", kPatience, [&] { return RunsOn(pod) == CpuSetOf(pod); });
    EXPECT_TRUE(runs.ok()) << RunsOn(pod).ToString() << " in place of " << CpusOf(pod);
  }
  void ExpectWithout(const RunningPod& pod, int cpu) {
    const Status left =
        WaitUntil("it leaves the CPU", kPatience, [&] { return !CpuSetOf(pod).Contains(cpu); });
    EXPECT_TRUE(left.ok()) << pod.workload.name << " is on " << CpusOf(pod);
    EXPECT_FALSE(CpuSetOf(pod).empty());
  }

  void ExpectLeavesAndUsesAgain();
  void ExpectARestartMovesNobody();
  void ExpectFewerCpusUntilTheyAreBack();

 private:
  CpuSet off_;
  RunningPod shared_;
  CpuSet whole_;  // CPUs of the shared container when it is alone
  RunningPod exclusive_;
  RunningPod other_;
};

void OfflineTest::ExpectLeavesAndUsesAgain() {
  const CpuSet own = CpuSetOf(exclusive_);
  const CpuSet others = CpuSetOf(other_);
  const int lost = own.First();

  TakeOff(lost);
  ExpectProblem(fmt::format("CPU {} is offline", lost));
  ExpectSize(exclusive_, 2);
  EXPECT_TRUE(CpuSetOf(exclusive_).Intersects(own)) << "it keeps what it can";
  EXPECT_TRUE(node().RelayLogs(fmt::format("CPU {} went offline", lost)));
  EXPECT_EQ(CpuSetOf(other_), others);
  ExpectWithout(shared_, lost);
  const RunningPod late = Add(exclusive_, Guaranteed("late", 1));
  ExpectSize(late, 1);
  End(late);
  const auto places = PlacesOf(exclusive_, other_);

  PutBack(lost);
  // Nothing is placed there before the cgroup of pods has the CPU.
  if (IsV1()) ExpectProblem("may not use it");
  GiveBackToParents();
  EXPECT_TRUE(node().RelayLogs(fmt::format("CPU {} came back", lost)));
  // Nothing runs on its former CPU now, so where the policy has the shared one there, it shares it.
  const bool shares = whole_.Contains(lost);
  ExpectNoProblem();
  EXPECT_EQ(PlacesOf(exclusive_, other_), places) << "they stay";
  const Status back = WaitUntil("it is shared", kPatience,
                                [&] { return CpuSetOf(shared_).Contains(lost) == shares; });
  EXPECT_TRUE(back.ok()) << CpusOf(shared_) << node().RelayLog();
}

void OfflineTest::ExpectARestartMovesNobody() {
  const int lost = CpuSetOf(exclusive_).First();
  const CpuSet others = CpuSetOf(other_);
  EndDaemon(SIGKILL);
  TakeOff(lost);
  StartDaemon();
  ExpectServing();
  ExpectSize(exclusive_, 2);
  EXPECT_EQ(CpuSetOf(other_), others);
  EXPECT_EQ(Ctl({"status"}).value("offline", ""), std::to_string(lost));
  ExpectWithout(shared_, lost);
  const auto places = PlacesOf(shared_, exclusive_, other_);
  RestartDaemon(SIGKILL);
  ExpectNoProblem();
  EXPECT_EQ(PlacesOf(shared_, exclusive_, other_), places);
  EXPECT_THAT(node().WholeRelayLog(), Not(HasSubstr("written on another machine")));

  PutBack(lost);
  GiveBackToParents();
  ExpectProblem("restart the daemon");
  RestartDaemon(SIGKILL);
  ExpectNoProblem();
  EXPECT_EQ(PlacesOf(exclusive_, other_)["exclusive"], places.at("exclusive"));
}

// Runs without a shared container: one whose last CPU goes offline would run on the CPUs of its
// parent cgroup, exclusive ones too, until the daemon has noticed.
void OfflineTest::ExpectFewerCpusUntilTheyAreBack() {
  End(other_);
  End(exclusive_);
  Remove(shared_);
  // CPU 0 is reserved, and one is left.
  const int size = All().size() - 2;
  const RunningPod large = Add(exclusive_, Guaranteed("large", size));
  const CpuSet own = CpuSetOf(large);
  ASSERT_EQ(own.size(), size);
  const CpuSet rest = Unreserved() - own;
  TakeOff(rest.First());
  ExpectProblem(fmt::format("CPU {} is offline", rest.First()));
  const int lost = own.First();
  TakeOff(lost);
  ExpectSize(large, size - 1);
  ExpectProblem("large");
  EXPECT_NE(RefusalOf(large, Guaranteed("too-large", 2)), "");
  PutBack(lost);
  GiveBackToParents();
  // The balloon `default` always has a CPU by its type, and lost it with the first one.
  const int granted = Policy() == "balloons" ? size - 1 : size;
  ExpectSize(large, granted);
  // Between two looks of the daemon; cgroup v1 takes the CPU out of the container's cpuset for
  // good.
  const int passing = CpuSetOf(large).First();
  TakeOff(passing);
  PutBack(passing);
  GiveBackToParents();
  ExpectSize(large, granted);
  PutBack(rest.First());
  GiveBackToParents();
  ExpectSize(large, size);
  ExpectNoProblem();
}

TEST_P(OfflineTest, ContainersLeaveCpusThatGoOfflineAndUseThemAgain) {
  ExpectLeavesAndUsesAgain();
  ExpectARestartMovesNobody();
  ExpectFewerCpusUntilTheyAreBack();
}

INSTANTIATE_TEST_SUITE_P(Containerd, OfflineTest,
                         ::testing::Combine(::testing::ValuesIn(kDoors),
                                            ::testing::ValuesIn(kAllPolicies)),
                         NameOfMachineCase);

}  // namespace
}  // namespace resmgr::test
