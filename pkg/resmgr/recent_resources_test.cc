// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/recent_resources.h"

#include <cstdint>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "test/support/seed.h"

namespace resmgr {
namespace {

Container Sharer(int last_cpu, int64_t shares) {
  Container container;
  container.placement.cpus = CpuSet::Range(0, last_cpu);
  container.requested.cpu_shares = shares;
  return container;
}

TEST(RecentResourcesTest, ContainersThatMoveAlikeShareThem) {
  RecentResources recent;
  const SharedResources first = recent.Desired(Sharer(511, 100));
  const SharedResources other = recent.Desired(Sharer(511, 200));
  EXPECT_NE(first, other);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(recent.Desired(Sharer(511, 100)), first);
    EXPECT_EQ(recent.Desired(Sharer(511, 200)), other);
  }
  EXPECT_EQ(recent.Share(DesiredResources(Sharer(511, 200))), other);
}

TEST(RecentResourcesTest, WhatAContainerHoldsDoesNotChange) {
  RecentResources recent;
  const SharedResources first = recent.Desired(Sharer(511, 100));
  const AppliedResources copy = *first;
  for (int cpu = 0; cpu < 100; ++cpu)
    recent.Desired(Sharer(cpu, 100));
  EXPECT_EQ(*first, copy);
  EXPECT_EQ(*recent.Desired(Sharer(511, 100)), copy);
}

TEST(RecentResourcesTest, WhatIsMissingIsOneForAllThatLackIt) {
  RecentResources recent;
  const auto missing = [&](int64_t shares) {
    const SharedResources before = recent.Desired(Sharer(511, shares));
    return recent.Missing(recent.Desired(Sharer(255, shares)), before);
  };
  const auto first = missing(100);
  EXPECT_EQ(*first, ResourceValues{.cpus = CpuSet::Range(0, 255)});
  EXPECT_EQ(missing(200), first);
}

// Uses random resources, many of them equal.
TEST(RecentResourcesTest, SaysWhatIsSaidWithoutIt) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  const auto pick = [&random](int most) {
    return std::uniform_int_distribution<int>(0, most)(random);
  };
  RecentResources recent;
  SharedResources before = recent.none();
  for (int round = 0; round < 10'000; ++round) {
    Container container = Sharer(500 + pick(3), pick(4));
    if (pick(3) == 0) container.placement.exclusive.Add(pick(2));
    if (pick(9) == 0) container.placement.cpus.reset();
    const SharedResources now =
        pick(1) == 0 ? recent.Desired(container) : recent.Share(DesiredResources(container));
    ASSERT_EQ(*now, DesiredResources(container)) << "round " << round;
    ASSERT_EQ(*recent.Missing(now, before), Difference(*now, *before)) << "round " << round;
    before = now;
  }
}

}  // namespace
}  // namespace resmgr
