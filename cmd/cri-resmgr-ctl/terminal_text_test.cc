// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/terminal_text.h"

#include <sstream>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(TerminalStyleTest, WhatIsNoTerminalGetsWholeCellsWithoutColours) {
  const std::ostringstream out;
  const TableStyle style = StyleFor(out, /*wide=*/false);
  EXPECT_EQ(style.width, 0U);
  EXPECT_FALSE(style.colour);
}

TEST(TerminalStyleTest, StatesHaveColours) {
  EXPECT_EQ(ColourOfState("running"), ColourOfState("ready"));
  EXPECT_NE(ColourOfState("running"), ColourOfState("failed"));
  EXPECT_EQ(ColourOfState("default/web/main"), "");
}

TEST(AmountsTest, CpusAndTimes) {
  EXPECT_EQ(CpusText(2000), "2");
  EXPECT_EQ(CpusText(250), "0.25");
  EXPECT_EQ(CpusText(-500), "-0.5");
  EXPECT_EQ(CpusText(-1), "0");
  EXPECT_EQ(TimeText(std::chrono::seconds(59)), "59 s");
  EXPECT_EQ(TimeText(std::chrono::seconds(119)), "1 min");
  EXPECT_EQ(TimeText(std::chrono::seconds(3 * 3600 + 300)), "3 h 5 min");
  EXPECT_EQ(TimeText(std::chrono::hours(220)), "9 d 4 h");
}

}  // namespace
}  // namespace resmgr
