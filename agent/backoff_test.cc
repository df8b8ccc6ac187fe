// SPDX-License-Identifier: Apache-2.0
#include "agent/backoff.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::agent {
namespace {

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

}  // namespace
}  // namespace resmgr::agent
