// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/terminal_style.h"

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

}  // namespace
}  // namespace resmgr
