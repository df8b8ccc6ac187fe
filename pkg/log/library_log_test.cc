// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/library_log.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/log/not_logged.h"
#include "pkg/log/rate_limit.h"

namespace resmgr {
namespace {

using std::chrono::seconds;
using testing::EndsWith;
using testing::SizeIs;

TEST(LibraryLogTest, SaysTenLinesAMinuteEscaped) {
  std::vector<std::string> lines;
  SetLogWriter([&lines](std::string_view line) { lines.emplace_back(line); });
  LibraryLog log("library");
  for (int i = 0; i < 1000; ++i)
    log.Say(LogLevel::kWarn, "field\x1b]0;x");
  log.Say(LogLevel::kDebug, "chatter");
  SetLogWriter(nullptr);
  ASSERT_THAT(lines, SizeIs(10));
  EXPECT_THAT(lines[0], EndsWith(" warning [library] field\\x1b]0;x\n"));
}

TEST(NotLoggedTest, SaysHowManyWereIfAnyWere) {
  EXPECT_EQ(NotLogged(0), "");
  EXPECT_EQ(NotLogged(3), " (3 more were not logged)");
}

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
