// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/amount_text.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;

TEST(BytesTextTest, BytesInTheUnitThatFits) {
  EXPECT_EQ(BytesText(0), "0");
  EXPECT_EQ(BytesText(512), "512 bytes");
  EXPECT_EQ(BytesText(32 * kMiB), "32 MiB");
  EXPECT_EQ(BytesText(kGiB + kGiB / 2), "1.5 GiB");
  EXPECT_EQ(BytesText(kGiB - 1), "1 GiB") << "not 1024 MiB";
  EXPECT_EQ(BytesText(3000 * kGiB), "2.9 TiB");
  EXPECT_EQ(BytesText(int64_t{1} << 60), "1048576 TiB");
  EXPECT_EQ(BytesOf(4 * kGiB, 32 * kGiB), "4 of 32 GiB");
  EXPECT_EQ(BytesOf(0, 32 * kGiB), "0 of 32 GiB");
  EXPECT_EQ(BytesOf(32 * kMiB, 2 * kGiB), "32 MiB of 2 GiB");
}

TEST(CountTextTest, OneIsNotSeveral) {
  EXPECT_EQ(CountText(0, "pod"), "0 pods");
  EXPECT_EQ(CountText(1, "exclusive CPU"), "1 exclusive CPU");
  EXPECT_EQ(CountText(2, "exclusive CPU"), "2 exclusive CPUs");
  EXPECT_EQ(CountIs(1, "call"), "1 call is");
  EXPECT_EQ(CountIs(12, "call"), "12 calls are");
}

TEST(AmountTextTest, OfLongListsTheFirstNamesAreTold) {
  EXPECT_EQ(FirstOf({}, 2), "");
  EXPECT_EQ(FirstOf({"a", "b"}, 2), "a, b");
  EXPECT_EQ(FirstOf({"a", "b", "c", "d"}, 2), "a, b and 2 more");
}

}  // namespace
}  // namespace resmgr
