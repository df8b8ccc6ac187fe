// SPDX-License-Identifier: Apache-2.0
#include "agent/retry_gate.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Ge;
using testing::Le;

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

}  // namespace
}  // namespace resmgr::agent
