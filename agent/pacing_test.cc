// SPDX-License-Identifier: Apache-2.0
#include "agent/pacing.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Ge;
using testing::Le;
using Duration = Backoff::Duration;

const Backoff::Options kOptions{.first = Duration(100), .limit = Duration(1000)};

TEST(BackoffTest, DoublesUpToTheLimit) {
  Backoff backoff(kOptions, 1);
  for (const int full : {100, 200, 400, 800, 1000, 1000, 1000}) {
    EXPECT_THAT(backoff.Next(), AllOf(Ge(Duration(0)), Le(Duration(full))));
  }
}

TEST(BackoffTest, StaysAtTheLimitForever) {
  Backoff backoff(kOptions, 1);
  for (int i = 0; i < 1000; ++i)
    EXPECT_LE(backoff.Next(), Duration(1000));
}

// Waits from half of the full one on would leave a gap without requests, and a crowd behind it.
TEST(BackoffTest, WaitsAreAnyPartOfTheFullOne) {
  Backoff backoff({.first = Duration(1000), .limit = Duration(1000)}, 1);
  int short_ones = 0;
  for (int i = 0; i < 1000; ++i)
    short_ones += backoff.Next() < Duration(500) ? 1 : 0;
  EXPECT_THAT(short_ones, AllOf(Ge(400), Le(600)));
}

TEST(BackoffTest, BeginsAnewAfterSuccess) {
  Backoff backoff(kOptions, 1);
  for (int i = 0; i < 10; ++i)
    backoff.Next();
  backoff.Reset();
  EXPECT_LE(backoff.Next(), Duration(100));
}

TEST(BackoffTest, SeedsMakeAgentsDiffer) {
  std::set<Duration> waits;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Backoff backoff({.first = Duration(100'000), .limit = Duration(100'000)}, seed);
    waits.insert(backoff.Next());
  }
  EXPECT_GT(waits.size(), 40u);
}

class RetryGateTest : public testing::Test {
 protected:
  RetryGate gate_{{.first = milliseconds(100), .limit = milliseconds(10'000)}, 7};
  RetryGate::TimePoint now_{std::chrono::hours(1)};
};

TEST_F(RetryGateTest, TheOthersComeAfterTheOneThatTries) {
  const auto first = gate_.Failed(now_);
  EXPECT_LE(first, milliseconds(100));
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(gate_.Failed(now_), AllOf(Ge(first), Le(first + milliseconds(120))));
  }
  EXPECT_EQ(gate_.Postponed(now_ + first), milliseconds(0));
}

TEST_F(RetryGateTest, TheOthersWaitOnWhereItTriedInVain) {
  now_ += gate_.Failed(now_);
  now_ += seconds(5);
  const auto second = gate_.Failed(now_);
  ASSERT_GT(second.count(), 1);
  EXPECT_GE(gate_.Postponed(now_ + second / 2), second - second / 2);
  EXPECT_EQ(gate_.Postponed(now_ + second), milliseconds(0));
}

TEST_F(RetryGateTest, WaitsForAtMostTheLimit) {
  milliseconds longest{};
  for (int i = 0; i < 1000; ++i) {
    const auto wait = gate_.Failed(now_);
    longest = std::max(longest, wait);
    now_ += wait + milliseconds(1);
  }
  EXPECT_THAT(longest, AllOf(Ge(seconds(9)), Le(seconds(10))));
}

TEST_F(RetryGateTest, TriesAgainWithinTwoThirdsOfTheOutage) {
  const auto began = now_;
  for (int i = 0; i < 1000 && now_ - began < seconds(20); ++i) {
    const auto wait = gate_.Failed(now_);
    EXPECT_LE(wait,
              std::max<RetryGate::TimePoint::duration>(milliseconds(100), (now_ - began) * 2 / 3));
    now_ += wait;
  }
}

TEST_F(RetryGateTest, BeginsAnewAfterSuccess) {
  for (int i = 0; i < 20; ++i)
    now_ += gate_.Failed(now_);
  gate_.Succeeded();
  EXPECT_LE(gate_.Failed(now_), milliseconds(100));
}

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
