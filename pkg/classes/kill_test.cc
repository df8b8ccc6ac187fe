// SPDX-License-Identifier: Apache-2.0
// Processes that are killed at any instant while they change a tree of files, and the next ones.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/classes/class_journal.h"
#include "pkg/classes/host_files.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/classes/partition_steps.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/seed.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;

constexpr int kFiles = 12;
constexpr int kGroups = 4;
constexpr int kPartitions = 4;
constexpr int kKills = 500;

class KillTest : public testing::Test {
 protected:
  KillTest() {
    for (int i = 0; i < kFiles; ++i) {
      const std::string path = PathOf(i);
      before_[path] = fmt::format("{}\n", i);
      fs::create_directories(fs::path(Root() + path).parent_path());
      std::ofstream(Root() + path) << before_[path];
    }
    for (int i = 0; i < kPartitions; ++i) {
      fs::create_directories(fs::path(Root() + CpusetOf(i, "")).parent_path());
      std::ofstream(Root() + CpusetOf(i, "exclusive"))
          << (before_[CpusetOf(i, "exclusive")] = fmt::format("{}\n", 10 + i));
      std::ofstream(Root() + CpusetOf(i, "partition"))
          << (before_[CpusetOf(i, "partition")] = "member\n");
    }
    fs::create_directories(Root() + "sys/fs/resctrl");
  }
  static std::string GroupOf(int i) { return fmt::format("sys/fs/resctrl/cri-resmgr.{}", i); }
  // Paths of files, of which some are given back before others.
  static std::string PathOf(int i) {
    if (i % 3 == 1) return fmt::format("sys/cpu{}/cpufreq/scaling_min_freq", i);
    if (i % 3 == 2) return fmt::format("sys/cpu{}/cpufreq/scaling_max_freq", i - 1);
    return fmt::format("sys/cpu{}/latency", i);
  }
  static std::string CpusetOf(int i, std::string_view file) {
    return fmt::format("sys/fs/cgroup/pod{}/cpuset.cpus.{}", i, file);
  }
  std::string Root() const { return directory_.path() + "/root/"; }
  std::map<std::string, std::string> Tree() const {
    std::map<std::string, std::string> tree;
    for (const auto& [path, text] : before_)
      tree[path] = ReadFile(Root() + path, 1 << 10).value_or("?");
    for (int i = 0; i < kGroups; ++i)
      if (fs::exists(Root() + GroupOf(i))) tree[GroupOf(i)] = "there";
    return tree;
  }
  static std::vector<HostValue> SomeValues(std::minstd_rand& random) {
    std::vector<HostValue> values;
    for (int i = 0; i < kFiles; ++i) {
      if (random() % 2 == 0) values.push_back({PathOf(i), fmt::format("{}", 1000 + random() % 5)});
    }
    for (int i = 0; i < kGroups; ++i) {
      if (random() % 2 == 0)
        values.push_back({.path = GroupOf(i) + "/.",
                          .text = std::string(HostFiles::kThere),
                          .together = "groups"});
    }
    // The partitions exchange their CPUs, which takes several steps.
    for (int i = 0; i < kPartitions; ++i) {
      if (random() % 4 == 0) continue;
      const int cpu = static_cast<int>(random() % 2) == 0 ? i : kPartitions - 1 - i;
      values.push_back({CpusetOf(i, "exclusive"), fmt::format("{}", cpu)});
      values.push_back({CpusetOf(i, "partition"), "isolated"});
    }
    return values;
  }
  // Never returns.
  [[noreturn]] void ChangeForever(unsigned seed) const {
    std::minstd_rand random(seed);
    RealHostFiles files(Root(), [](std::string_view) {});
    ClassJournal journal(directory_.path() + "/classes", "");
    HostKeeper keeper(files, journal);
    for (;;)
      KeepInSteps(SomeValues(random), keeper);
  }

  const TempDir directory_;
  std::map<std::string, std::string> before_;
};

TEST_F(KillTest, TheNextProcessGivesEverythingBack) {
  const uint64_t seed = test::SeedOr(42);
  SCOPED_TRACE(test::Repeat(seed));
  std::minstd_rand random(static_cast<unsigned>(seed));
  for (int kill_number = 0; kill_number < kKills; ++kill_number) {
    const auto child_seed = static_cast<unsigned>(random());
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ChangeForever(child_seed);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;

    RealHostFiles files(Root(), [](std::string_view) {});
    ClassJournal journal(directory_.path() + "/classes", "");
    ASSERT_TRUE(journal.Open().ok());
    ASSERT_EQ(journal.damage(), "");
    // After every second kill the test goes on with the same state.
    if (kill_number % 2 == 1) continue;
    HostKeeper keeper(files, journal);
    const HostKeeper::Result result = keeper.Keep({});
    EXPECT_TRUE(result.not_given_back.empty());
    EXPECT_TRUE(result.notes.empty()) << result.notes[0];
    ASSERT_EQ(Tree(), before_) << "kill " << kill_number;
  }
}

}  // namespace
}  // namespace resmgr
