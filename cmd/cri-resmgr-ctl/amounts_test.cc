// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/amounts.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;

TEST(AmountsTest, BytesInTheUnitThatFits) {
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
