// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/only_one.h"

#include <functional>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(OnlyOneThatBeginsWithTest, TakesTheWholeKeyOrTheOnlyOne) {
  const std::map<std::string, int, std::less<>> map = {{"ab", 1}, {"abc", 2}, {"abd", 3}, {"x", 4}};
  EXPECT_EQ(OnlyOneThatBeginsWith(map, "ab"), 1);
  EXPECT_EQ(OnlyOneThatBeginsWith(map, "abc"), 2);
  EXPECT_EQ(OnlyOneThatBeginsWith(map, "a"), 0);
  EXPECT_EQ(OnlyOneThatBeginsWith(map, "x"), 4);
  EXPECT_EQ(OnlyOneThatBeginsWith(map, "xy"), 0);
  EXPECT_EQ(OnlyOneThatBeginsWith(map, ""), 0);
  EXPECT_EQ(OnlyOneThatBeginsWith(map, "z"), 0);
}

}  // namespace
}  // namespace resmgr
