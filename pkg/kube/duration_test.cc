// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/duration.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

using std::chrono::milliseconds;

std::optional<int64_t> Read(std::string_view text) {
  const auto duration = ParseDuration(text, std::chrono::hours(1));
  if (!duration) return std::nullopt;
  return duration->count();
}

TEST(DurationTest, SumsItsParts) {
  EXPECT_EQ(Read("500ms"), 500);
  EXPECT_EQ(Read("0s"), 0);
  EXPECT_EQ(Read("90s"), 90'000);
  EXPECT_EQ(Read("1m30s"), 90'000);
  EXPECT_EQ(Read("59m60s"), 3'600'000);
  EXPECT_EQ(Read("1h"), 3'600'000);
}

TEST(DurationTest, IsWrittenAsItIsRead) {
  for (const char* const text : {"0s", "1ms", "1500ms", "2s", "90s", "2m", "1h"}) {
    EXPECT_EQ(DurationText(std::chrono::milliseconds(Read(text).value_or(-1))), text);
  }
}

TEST(DurationTest, RefusesEverythingElse) {
  for (const char* const text : {"", "60", "s", "-5s", "+5s", "1x", "5s ", " 5s", "1.5s", "1h1ms",
                                 "9999999999999h", "99999999999999999999s", "1d", "1s1"}) {
    EXPECT_EQ(Read(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace resmgr
