// SPDX-License-Identifier: Apache-2.0
// Containers move between shared pools by their use, from a fake tree of the kernel's files.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/control_fixture.h"
#include "test/support/cri_client/specs.h"

namespace resmgr::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::SizeIs;

// A container's counters, which grow with the time.
struct Counted {
  fs::path directory{};
  double cpus = 0;
  double waits = 0;  // percent
  double usage_us = 0;
  double waited_us = 0;
};

// Two packages of four CPUs; four containers, of which those of one package are crowded.
class UseRebalanceTest : public ControlTest {
 protected:
  ~UseRebalanceTest() override { ticker_ = {}; }

  std::vector<std::string> TopologyAwareFlags() const {
    std::vector<std::string> flags = Flags(
        {"-policy", "topology-aware", "-reserved-resources", "CPU=1", "-host-root", Path("root")});
    *(std::ranges::find(flags, "-topology") + 1) = "synthetic:package:2 numa:1 core:4 pu:1";
    return flags;
  }
  void Start() {
    Write(fs::path(Path("root")) / "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    StartRuntime();
    StartDaemon(TopologyAwareFlags());
    ASSERT_TRUE(Logged("the runtime holds")) << daemon_->Log();
    ASSERT_EQ(Ctl({"config", "set",
                   WriteFile("often.yaml",
                             "policy: {Active: topology-aware, ReservedResources: {CPU: 1}}\n"
                             "usage: {Interval: 1s}\n")})
                  .exit_code,
              0);
    CriClient client = Relayed();
    for (const char* const name : {"a", "b", "c", "d"}) {
      const cri::PodSandboxConfig pod = MakeBurstablePod(name);
      const std::string id =
          Run(client, pod, MakeBurstableContainer("main", MilliCpu{300})).container;
      counted_[id].directory =
          fs::path(Path("root")) / ("sys/fs/cgroup" + pod.linux().cgroup_parent()) / id;
      before_[id] = CpusAtRuntime(id);
    }
    const CpuSet crowded = Crowded();
    for (auto& [id, counted] : counted_) {
      if (before_[id] != crowded) continue;
      counted.cpus = 1.9;
      counted.waits = 40;
    }
    ticker_ = std::jthread([this](const std::stop_token& stop) { Tick(stop); });
  }
  // The CPUs that most containers have.
  CpuSet Crowded() {
    std::map<std::string, int> counts;
    for (const auto& [id, cpus] : before_)
      ++counts[cpus.ToString()];
    return *CpuSet::Parse(
        std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first);
  }
  static void Write(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file.string() + ".new") << text;
    fs::rename(file.string() + ".new", file);
  }
  void Tick(const std::stop_token& stop) {
    auto last = std::chrono::steady_clock::now();
    while (!stop.stop_requested()) {
      const auto now = std::chrono::steady_clock::now();
      const double us = std::chrono::duration<double, std::micro>(now - last).count();
      last = now;
      {
        const std::lock_guard lock(mutex_);
        for (auto& [id, counted] : counted_) {
          counted.usage_us += us * counted.cpus;
          counted.waited_us += us * counted.waits / 100;
          Write(counted.directory / "cpu.stat",
                fmt::format("usage_usec {:.0f}\nnr_periods 0\nnr_throttled 0\n", counted.usage_us));
          Write(counted.directory / "cpu.pressure",
                fmt::format("some avg10={0:.2f} avg60={0:.2f} avg300=0.00 total={1:.0f}\n",
                            counted.waits, counted.waited_us));
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  void Use(const std::string& id, double cpus, double waits) {
    const std::lock_guard lock(mutex_);
    counted_[id].cpus = cpus;
    counted_[id].waits = waits;
  }
  Json Rebalance(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"rebalance", "-by", "use", "-o", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Ctl(arguments).json();
  }
  // Containers that have other CPUs than at the beginning.
  std::vector<std::string> Moved() {
    std::vector<std::string> moved;
    for (const auto& [id, cpus] : before_)
      if (CpusAtRuntime(id) != cpus) moved.push_back(id);
    return moved;
  }
  // The container that is moved, after a preview.
  std::string Apply() {
    EXPECT_TRUE(Eventually([this] {
      const Json preview = Rebalance({});
      return preview.is_object() && preview["byUse"]["moves"].size() == 1;
    })) << Ctl({"rebalance", "-by", "use"}).err;
    EXPECT_THAT(Moved(), SizeIs(0)) << "a preview";
    EXPECT_TRUE(Eventually([this] {
      return Ctl({"rebalance", "-by", "use", "-apply"}).exit_code == 0;
    })) << Ctl({"rebalance", "-by", "use", "-apply"}).err;
    EXPECT_TRUE(Eventually([this] { return Moved().size() == 1; }));
    return Moved().empty() ? "" : Moved()[0];
  }
  bool EndsAs(const std::string& state) {
    return Eventually([&] {
      const Json answer = Rebalance({});
      return answer.is_object() && answer["last"].is_object() && answer["last"]["state"] == state;
    });
  }

  std::mutex mutex_;
  std::map<std::string, Counted> counted_;
  std::map<std::string, CpuSet> before_;
  std::jthread ticker_;
};

TEST_F(UseRebalanceTest, MovesWhatIsCrowdedAndKeepsWhatHelpsOverAKill) {
  Start();
  const std::string moved = Apply();
  ASSERT_FALSE(moved.empty());
  EXPECT_FALSE(CpusAtRuntime(moved).Intersects(before_[moved]));
  for (const auto& [id, cpus] : before_)
    if (cpus == Crowded()) Use(id, 3, 0);
  EXPECT_THAT(Ctl({"history"}).out, HasSubstr("measured use: default/"));
  EXPECT_TRUE(EndsAs("kept")) << Ctl({"rebalance", "-by", "use"}).out;
  EXPECT_THAT(Ctl({"explain", moved}).out, HasSubstr("by use"));
  EXPECT_THAT(Ctl({"status"}).out, HasSubstr("CPUs were gained of"));
  EXPECT_THAT(Ctl({"rebalance", "-by", "use"}).out, HasSubstr("the last one, of"));
  EXPECT_TRUE(Logged("CPUs were gained of"));
  const CpuSet after = CpusAtRuntime(moved);
  ASSERT_EQ(::kill(pid(), SIGKILL), 0);
  daemon_.reset();
  StartDaemon(TopologyAwareFlags());
  ASSERT_TRUE(Logged("the runtime holds")) << daemon_->Log();
  EXPECT_EQ(CpusAtRuntime(moved), after);
  EXPECT_THAT(Moved(), SizeIs(1));
}

TEST_F(UseRebalanceTest, TakesBackWhatDoesNotHelp) {
  Start();
  const std::string moved = Apply();
  ASSERT_FALSE(moved.empty());
  for (const auto& [id, cpus] : before_)
    if (cpus == before_[moved] && id != moved) Use(id, 4, 50);
  EXPECT_TRUE(EndsAs("taken back")) << Ctl({"rebalance", "-by", "use"}).out;
  EXPECT_TRUE(Eventually([this] { return Moved().empty(); }));
  EXPECT_THAT(Ctl({"history"}).out, HasSubstr("taken back"));
}

TEST_F(UseRebalanceTest, OtherPoliciesHaveNothingToMove) {
  Write(fs::path(Path("root")) / "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  StartRuntime();
  StartDaemon(StaticFlags({"-host-root", Path("root")}));
  const Shown shown = Ctl({"rebalance", "-by", "use", "-apply"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("policy static has no shared pools between which"));
  EXPECT_THAT(Ctl({"rebalance", "-moves", "3"}).err, HasSubstr("needs -by use"));
  EXPECT_THAT(Ctl({"rebalance", "-by", "use", "-moves", "101"}).err, HasSubstr("from 0 to 100"));
}

}  // namespace
}  // namespace resmgr::test
