// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/burst_plan.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(BurstPlanTest, ABurstIsAPartOfTheQuota) {
  EXPECT_EQ(BurstOf(50'000, 50), 25'000);
  EXPECT_EQ(BurstOf(50'000, 0), 0);
  EXPECT_EQ(BurstOf(50'000, 100), 50'000);
  EXPECT_EQ(BurstOf(50'000, 1000), 50'000) << "the kernel takes no more";
  EXPECT_EQ(BurstOf(-1, 100), std::nullopt);
  EXPECT_EQ(BurstOf(0, 100), std::nullopt);
}

TEST(BurstPlanTest, QuotasOfBothVersionsOfCgroups) {
  EXPECT_EQ(ParseQuota("50000 100000\n").value(), 50'000);
  EXPECT_EQ(ParseQuota("max 100000\n").value(), -1);
  EXPECT_EQ(ParseQuota("50000\n").value(), 50'000);
  EXPECT_EQ(ParseQuota("-1\n").value(), -1);
  EXPECT_FALSE(ParseQuota("").ok());
  EXPECT_FALSE(ParseQuota("x 100000").ok());
}

TEST(BurstPlanTest, PropertyABurstIsNeverAboveTheQuota) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 10'000; ++round) {
    const auto quota = static_cast<int64_t>(random() % (uint64_t{1} << (1 + random() % 62)));
    const auto percent = static_cast<int64_t>(random() % 1001);
    const std::optional<int64_t> burst = BurstOf(quota, percent);
    ASSERT_EQ(burst.has_value(), quota > 0);
    if (!burst) continue;
    ASSERT_LE(*burst, quota);
    ASSERT_GE(*burst, 0);
    const bool exact = percent < 100 && quota < std::numeric_limits<int64_t>::max() / 1000;
    ASSERT_EQ(*burst, exact ? quota * percent / 100 : *burst);
  }
}

}  // namespace
}  // namespace resmgr
