// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/backoff.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

using std::chrono::milliseconds;

TEST(BackoffTest, PausesDoubleUpToTheLastAndBeginAnew) {
  Backoff pauses(milliseconds(100), milliseconds(350));
  for (const int pause : {100, 200, 350, 350})
    EXPECT_EQ(pauses.Next(), milliseconds(pause));
  pauses.Reset();
  EXPECT_EQ(pauses.Next(), milliseconds(100));
  pauses.SkipToLast();
  EXPECT_EQ(pauses.Next(), milliseconds(350));
}

TEST(BackoffTest, NoPauseIsLongerThanTheLast) {
  Backoff pauses(milliseconds(100), milliseconds(50));
  EXPECT_EQ(pauses.Next(), milliseconds(50));
}

TEST(BackoffTest, APauseFollowsAnother) {
  const auto after = [](int former) {
    return Backoff::After(milliseconds(former), milliseconds(50), milliseconds(5'000)).count();
  };
  EXPECT_EQ(after(0), 50);
  EXPECT_EQ(after(50), 100);
  EXPECT_EQ(after(3'200), 5'000);
}

}  // namespace
}  // namespace resmgr
