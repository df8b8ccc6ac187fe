// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/table.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(TableTest, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(FormatTable({{"A", "BB", "C"}, {"aaa", "b", "c"}, {"x"}}),
            "A    BB  C\n"
            "aaa  b   c\n"
            "x\n");
  EXPECT_EQ(FormatTable({{"A", "B"}, {"\xc3\xa4\xc3\xb6", "b"}}), "A   B\n\xc3\xa4\xc3\xb6  b\n")
      << "characters count, not bytes";
}

TEST(TableTest, ACellNeitherMovesTheCursorNorAddsALine) {
  EXPECT_EQ(FormatTable({{"A", "B"}, {"x\ny", "\x1b]0;title\x07"}}),
            "A       B\n"
            "x\\x0ay  \\x1b]0;title\\x07\n");
}

TEST(TableTest, ATooWideTableLosesTheEndsOfItsWidestCells) {
  const TableStyle narrow = {.width = 24};
  EXPECT_EQ(
      FormatTable({{"NAME", "CPUS", "STATE"}, {"web", "0,2,4,6,8,10,12,14,16", "running"}}, narrow),
      "NAME  CPUS       STATE\n"
      "web   0,2,4,6,…  running\n");
  EXPECT_EQ(FormatTable({{"A", "B"}, {"x", "y"}}, narrow), "A  B\nx  y\n");
  EXPECT_EQ(FormatTable({{"a long cell", "another one"}}, {.width = 4}), "a long …  another…\n")
      << "some of each cell stays";
}

TEST(TableTest, ColoursTakeNoRoom) {
  const TableStyle style = {
      .colour = [](std::string_view cell) -> std::string_view { return cell == "up" ? "32" : ""; }};
  EXPECT_EQ(FormatTable({{"up", "b"}, {"down", "up"}}, style),
            "\x1b[32mup\x1b[0m    b\ndown  \x1b[32mup\x1b[0m\n");
}

}  // namespace
}  // namespace resmgr
