// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/cpu_arithmetic.h"

#include <limits>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

TEST(CpuArithmeticTest, EveryMilliValueSurvivesTheKubeletsRounding) {
  for (int64_t milli = 1; milli <= 262'144; ++milli) {
    const int64_t shares = SharesFromMilliCpu(MilliCpu{milli});
    const int64_t expected = milli < 3 ? 0 : std::min<int64_t>(milli, 256'000);
    ASSERT_EQ(MilliCpuFromShares(shares).value, expected) << milli;
  }
}

TEST(CpuArithmeticTest, EveryShareValueIsReachedOrSkippedInOrder) {
  int64_t before = 0;
  for (int64_t shares = 0; shares <= kMaxShares; ++shares) {
    const int64_t milli = MilliCpuFromShares(shares).value;
    ASSERT_GE(milli, before) << shares;
    ASSERT_GE(SharesFromMilliCpu(MilliCpu{milli}), std::min(shares, kMinShares)) << shares;
    before = milli;
  }
}

TEST(CpuArithmeticTest, SharesAreTheKubelets) {
  EXPECT_EQ(SharesFromMilliCpu(MilliCpu{0}), 2);
  EXPECT_EQ(SharesFromMilliCpu(MilliCpu{1}), 2);
  EXPECT_EQ(SharesFromMilliCpu(MilliCpu{100}), 102);
  EXPECT_EQ(SharesFromMilliCpu(MilliCpu{900}), 921);
  EXPECT_EQ(SharesFromMilliCpu(MilliCpu{1000}), 1024);
  EXPECT_EQ(SharesFromMilliCpu(MilliCpu{kLargest}), kMaxShares);
  EXPECT_EQ(SharesFromMilliCpu(MilliCpu{-5}), 2);
}

TEST(CpuArithmeticTest, SharesOutOfRangeAreClamped) {
  EXPECT_EQ(MilliCpuFromShares(-1).value, 0);
  EXPECT_EQ(MilliCpuFromShares(2).value, 0);
  EXPECT_EQ(MilliCpuFromShares(kMaxShares).value, 256'000);
  EXPECT_TRUE(SharesTell(MilliCpu{255'999}));
  EXPECT_FALSE(SharesTell(MilliCpu{256'000}));
  EXPECT_EQ(MilliCpuFromShares(kLargest).value, 256'000);
}

TEST(CpuArithmeticTest, EveryLimitSurvivesQuotaAtTheUsualPeriods) {
  for (const int64_t period :
       {int64_t{1'000}, int64_t{5'000}, kDefaultCpuPeriod, int64_t{1'000'000}}) {
    const int64_t first = kMinQuota * 1000 / period;
    for (int64_t milli = std::max<int64_t>(first, 1); milli <= 20'000; ++milli) {
      const int64_t quota = QuotaFromMilliCpu(MilliCpu{milli}, period);
      ASSERT_EQ(MilliCpuFromQuota(quota, period).value, milli) << period;
    }
  }
}

TEST(CpuArithmeticTest, QuotaHasALowestValueAndNoLimitIsNone) {
  EXPECT_EQ(QuotaFromMilliCpu(MilliCpu{1500}), 150'000);
  EXPECT_EQ(QuotaFromMilliCpu(MilliCpu{3}), kMinQuota);
  EXPECT_EQ(QuotaFromMilliCpu(MilliCpu{0}), kNoQuota);
  EXPECT_EQ(MilliCpuFromQuota(kNoQuota, kDefaultCpuPeriod).value, 0);
  EXPECT_EQ(MilliCpuFromQuota(0, kDefaultCpuPeriod).value, 0);
  EXPECT_EQ(MilliCpuFromQuota(1000, 0).value, 0);
  EXPECT_EQ(MilliCpuFromQuota(1000, -1).value, 0);
}

TEST(CpuArithmeticTest, HugeValuesSaturate) {
  EXPECT_EQ(MilliCpuFromQuota(kLargest, 1).value, kLargest);
  EXPECT_EQ(QuotaFromMilliCpu(MilliCpu{kLargest}, kLargest), kLargest);
}

TEST(CpuArithmeticTest, NoQuotaHasOneForm) {
  EXPECT_EQ(QuotaOrNone(std::nullopt), kNoQuota);
  EXPECT_EQ(QuotaOrNone(0), kNoQuota);
  EXPECT_EQ(QuotaOrNone(-5), kNoQuota);
  EXPECT_EQ(QuotaOrNone(150'000), 150'000);
}

}  // namespace
}  // namespace resmgr
