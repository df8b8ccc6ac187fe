// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/memory_trouble.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/seed.h"

namespace resmgr {
namespace {

using std::chrono::seconds;
using testing::StartsWith;

ContainerFigures Figures() {
  return {.subject = {.namespace_name = "ns", .pod = "web", .container = "main"},
          .oom_kills = 1,
          .oom_events = 1,
          .memory_limit = 512 << 20};
}

TEST(MemoryTroubleTest, NamesTheLimitThatWasReached) {
  ContainerFigures container = Figures();
  EXPECT_EQ(KilledForMemory(container).message,
            "by its limit of 512 MiB; afterwards it had an amount that is not known");
  container.oom_events.reset();
  EXPECT_EQ(KilledForMemory(container).message,
            "by its limit of 512 MiB; afterwards it had an amount that is not known")
      << "cgroup v1 does not tell whose";
}

TEST(MemoryTroubleTest, NamesPodAndNodesIfItsOwnLimitIsNotTheCause) {
  ContainerFigures container = Figures();
  container.oom_events = 0;
  container.memory_bytes = 1 << 20;
  EXPECT_EQ(KilledForMemory(container).message,
            "not by its limit of 512 MiB but by the limit of its pod or the memory of the machine; "
            "afterwards it had 1 MiB");
  container.memory_limit.reset();
  container.subject.mems = {1};
  Problem problem = KilledForMemory(container);
  EXPECT_EQ(problem.message,
            "by the limit of its pod or the memory of its node 1; afterwards it had 1 MiB");
  EXPECT_EQ(problem.next, "cri-resmgr-ctl top nodes");
  container.subject.mems = {0, 1};
  EXPECT_THAT(KilledForMemory(container).message,
              StartsWith("by the limit of its pod or the memory of its nodes 0-1;"));
}

TEST(MemoryTroubleTest, KillsCountForAnHourToTheMinute) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  const auto hour = seconds(KillsOfAnHour::kHour);
  KillsOfAnHour kills;
  std::vector<std::pair<seconds, uint64_t>> all;
  seconds now{0};
  for (int i = 0; i < 2000; ++i) {
    now += seconds(1 + random() % 60);
    const uint64_t killed = random() % 3;
    kills.Add(std::chrono::steady_clock::time_point(now), killed);
    all.emplace_back(now, killed);
    uint64_t surely = 0;
    uint64_t possibly = 0;
    for (const auto& [time, count] : all) {
      if (now - time < hour - seconds(60)) surely += count;
      if (now - time < hour) possibly += count;
    }
    const uint64_t counted = kills.Count(std::chrono::steady_clock::time_point(now));
    EXPECT_GE(counted, surely);
    EXPECT_LE(counted, possibly);
  }
  EXPECT_EQ(kills.Count(std::chrono::steady_clock::time_point(now + hour)), 0U);
}

}  // namespace
}  // namespace resmgr
