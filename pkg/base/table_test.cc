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

}  // namespace
}  // namespace resmgr
