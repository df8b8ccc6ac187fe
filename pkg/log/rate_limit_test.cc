// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/rate_limit.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

using std::chrono::seconds;

TEST(RateLimitTest, PassesTheFirstOnesOfAPeriodAndCountsTheRest) {
  RateLimit limit(2, seconds(10));
  const RateLimit::Clock::time_point start(seconds(100));
  EXPECT_EQ(limit.Pass(start), 0U);
  EXPECT_EQ(limit.Pass(start + seconds(1)), 0U);
  EXPECT_EQ(limit.Pass(start + seconds(2)), std::nullopt);
  EXPECT_EQ(limit.Pass(start + seconds(9)), std::nullopt);
  EXPECT_EQ(limit.Pass(start + seconds(10)), 2U);
  EXPECT_EQ(limit.Pass(start + seconds(11)), 0U);
  EXPECT_EQ(limit.Pass(start + seconds(12)), std::nullopt);
}

TEST(RateLimitTest, PeriodStartsWithItsFirstMessage) {
  RateLimit limit(1, seconds(10));
  const RateLimit::Clock::time_point start(seconds(100));
  EXPECT_EQ(limit.Pass(start), 0U);
  EXPECT_EQ(limit.Pass(start + seconds(18)), 0U);
  EXPECT_EQ(limit.Pass(start + seconds(21)), std::nullopt);
  EXPECT_EQ(limit.Pass(start + seconds(28)), 1U);
}

}  // namespace
}  // namespace resmgr
