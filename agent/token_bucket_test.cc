// SPDX-License-Identifier: Apache-2.0
#include "agent/token_bucket.h"

#include <gtest/gtest.h>

namespace resmgr::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(TokenBucketTest, LetsABurstThroughAndThenOneInEachPeriod) {
  TokenBucket bucket({.burst = 3, .period = seconds(10)});
  const TokenBucket::Clock::time_point start{std::chrono::hours(1)};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(bucket.Wait(start), milliseconds(0));
    bucket.Take(start);
  }
  EXPECT_EQ(bucket.Wait(start), seconds(10));
  EXPECT_EQ(bucket.Wait(start + seconds(4)), seconds(6));
  EXPECT_EQ(bucket.Wait(start + seconds(10)), milliseconds(0));
  bucket.Take(start + seconds(10));
  EXPECT_EQ(bucket.Wait(start + seconds(10)), seconds(10));
}

TEST(TokenBucketTest, IsFullAgainAfterARest) {
  TokenBucket bucket({.burst = 2, .period = seconds(10)});
  TokenBucket::Clock::time_point now{std::chrono::hours(1)};
  for (int i = 0; i < 2; ++i)
    bucket.Take(now);
  now += std::chrono::hours(1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(bucket.Wait(now), milliseconds(0));
    bucket.Take(now);
  }
  EXPECT_EQ(bucket.Wait(now), seconds(10)) << "and no fuller than full";
}

}  // namespace
}  // namespace resmgr::agent
