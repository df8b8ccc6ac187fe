// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/count_text.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(CountTextTest, OneIsNotSeveral) {
  EXPECT_EQ(CountText(0, "pod"), "0 pods");
  EXPECT_EQ(CountText(1, "exclusive CPU"), "1 exclusive CPU");
  EXPECT_EQ(CountText(2, "exclusive CPU"), "2 exclusive CPUs");
  EXPECT_EQ(CountIs(1, "call"), "1 call is");
  EXPECT_EQ(CountIs(12, "call"), "12 calls are");
}

}  // namespace
}  // namespace resmgr
