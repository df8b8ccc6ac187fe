// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/allocator/cpu_allocator.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

std::string Take(const Machine& machine, std::string_view available, int count) {
  const StatusOr<CpuSet> cpus = TakeIdleGroups(machine, test::Cpus(available), count);
  return cpus.ok() ? cpus->ToString() : std::string(Message(cpus.status()));
}

// Two packages of two nodes of two L3 groups of two cores: a group is four neighbours.
Machine Nested() {
  return test::MakeMachine(
      {.packages = 2, .nodes = 2, .l3s = 2, .cores = 4, .threads = 2, .siblings_apart = false});
}

TEST(TakeIdleGroupsTest, TakesWholeGroupsFromLargeToSmall) {
  EXPECT_EQ(Take(Nested(), "0-31", 16), "0-15");
  EXPECT_EQ(Take(Nested(), "1-31", 16), "16-31");
  EXPECT_EQ(Take(Nested(), "1-31", 8), "8-15");
  EXPECT_EQ(Take(Nested(), "1-31", 4), "4-7");
  EXPECT_EQ(Take(Nested(), "0-31", 21), "0-20");
}

TEST(TakeIdleGroupsTest, PutsTheRestWhereItFitsTightest) {
  EXPECT_EQ(Take(Nested(), "0-7,14-15,16-31", 2), "14-15");
  EXPECT_EQ(Take(Nested(), "0-7,13-15,16-31", 2), "14-15") << "a whole core";
  EXPECT_EQ(Take(Nested(), "0-3,5,8-31", 1), "5");
}

TEST(TakeIdleGroupsTest, PrefersWholeCoresWhereNoGroupHoldsAll) {
  // Cores 2-3 and 6-7 are idle; no node has four.
  const Machine machine = test::MakeMachine(
      {.packages = 2, .nodes = 2, .cores = 2, .threads = 2, .siblings_apart = false});
  EXPECT_EQ(Take(machine, "1-3,5-7,10-11,15", 4), "2-3,6-7");
}

TEST(TakeIdleGroupsTest, CompletesCoresInUseBeforeBreakingIdleOnes) {
  const Machine machine = test::S1Ht();
  EXPECT_EQ(Take(machine, "0-6", 1), "3");
  EXPECT_EQ(Take(machine, "0-6", 3), "0,3-4");
}

TEST(TakeIdleGroupsTest, TakesPreferredCpusFirst) {
  const Machine machine = Nested();
  const std::array<CpuSet, 2> preferred = {test::Cpus("30"), test::Cpus("20-23")};
  const StatusOr<CpuSet> cpus = TakeIdleGroups(machine, machine.online(), 4, preferred);
  ASSERT_TRUE(cpus.ok()) << cpus.status();
  EXPECT_EQ(cpus->ToString(), "20-22,30");
}

// The golden case of cri-resource-manager's allocator, with three fast CPUs: 2, 15 and 17.
TEST(TakeIdleGroupsTest, TheRestGoesBesideThePreferredOnes) {
  const Machine machine = test::MakeMachine({.packages = 2, .nodes = 2, .cores = 10, .threads = 2});
  const std::array<CpuSet, 1> fast = {test::Cpus("2,15,17,42,55,57")};
  const StatusOr<CpuSet> cpus = TakeIdleGroups(machine, test::Cpus("2-3,10-25"), 4, fast);
  ASSERT_TRUE(cpus.ok()) << cpus.status();
  EXPECT_EQ(cpus->ToString(), "2-3,15,17") << "the tighter package would be the other one";
}

TEST(TakeIdleGroupsTest, RefusesWhatIsNotThere) {
  EXPECT_EQ(Take(test::S1Ht(), "0-2", 4),
            "not enough cpus available to satisfy request: requested=4, available=3");
  EXPECT_FALSE(TakeIdleGroups(test::S1Ht(), test::Cpus("0"), -1).ok());
  EXPECT_EQ(Take(test::S1Ht(), "0-2", 0), "");
}

TEST(TakeIdleGroupsTest, ReturnsExactlyWhatIsAskedForOfWhatIsThere) {
  std::mt19937_64 random(5);
  const std::vector<Machine> machines = {test::S2Ht(), test::M80(),    test::F80(),
                                         test::Q288(), test::Hybrid(), Nested()};
  for (int round = 0; round < 600; ++round) {
    const Machine& machine = machines[random() % machines.size()];
    CpuSet available;
    CpuSet preferred;
    for (const int cpu : machine.online()) {
      if (random() % 3 != 0) available.Add(cpu);
      if (random() % 4 == 0) preferred.Add(cpu);
    }
    const int count = static_cast<int>(random() % static_cast<uint64_t>(available.size() + 1));
    const StatusOr<CpuSet> cpus =
        TakeIdleGroups(machine, available, count, std::array<CpuSet, 1>{preferred});
    ASSERT_TRUE(cpus.ok()) << cpus.status();
    EXPECT_EQ(cpus->size(), count);
    EXPECT_TRUE(cpus->IsSubsetOf(available));
    EXPECT_EQ(cpus->CountCommon(preferred), std::min(count, available.CountCommon(preferred)));
  }
}

}  // namespace
}  // namespace resmgr
