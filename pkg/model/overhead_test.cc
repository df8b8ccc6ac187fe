// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/overhead.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"

namespace resmgr {
namespace {

LinuxResources AsKubeletsState(int64_t milli_cpu) {
  LinuxResources stated;
  stated.cpu_shares = SharesFromMilliCpu({milli_cpu});
  if (milli_cpu > 0) stated.cpu_quota = QuotaFromMilliCpu({milli_cpu});
  stated.cpu_period = kDefaultCpuPeriod;
  return stated;
}

TEST(OverheadTest, IsWhatTheRuntimeClassSays) {
  LinuxResources stated = AsKubeletsState(250);
  stated.memory_limit = 120 << 20;
  EXPECT_EQ(OverheadFrom(stated), (Overhead{{250}, {120 << 20}}));
  EXPECT_TRUE(OverheadFrom(LinuxResources()).empty());
}

// A larger overhead than the scheduler's would refuse pods that fit.
TEST(OverheadTest, IsNeverMoreThanTheSchedulerCounts) {
  for (int64_t milli_cpu = 0; milli_cpu <= 5000; ++milli_cpu) {
    const int64_t read = OverheadFrom(AsKubeletsState(milli_cpu)).cpu.value;
    EXPECT_LE(read, milli_cpu);
    EXPECT_EQ(read, milli_cpu < 3 ? 0 : milli_cpu);
  }
}

TEST(OverheadTest, QuotaOrSharesAloneAreEnough) {
  LinuxResources quota;
  quota.cpu_quota = 25'000;
  EXPECT_EQ(OverheadFrom(quota).cpu, MilliCpu{250});
  quota.cpu_period = 50'000;
  EXPECT_EQ(OverheadFrom(quota).cpu, MilliCpu{500});
  quota.cpu_shares = kMinShares;
  EXPECT_EQ(OverheadFrom(quota).cpu, MilliCpu{500});
  LinuxResources shares;
  shares.cpu_shares = 256;
  shares.cpu_quota = -1;
  EXPECT_EQ(OverheadFrom(shares).cpu, MilliCpu{250});
}

TEST(OverheadTest, AbsurdAmountsCannotOverflowSums) {
  LinuxResources stated;
  stated.cpu_quota = std::numeric_limits<int64_t>::max();
  stated.cpu_period = 1;
  stated.memory_limit = std::numeric_limits<int64_t>::max();
  const Overhead most = OverheadFrom(stated);
  EXPECT_LE(most.cpu.value, 1'000'000);
  EXPECT_LE(most.memory.value, int64_t{1} << 44);
  stated.cpu_quota = stated.memory_limit = std::numeric_limits<int64_t>::min();
  EXPECT_TRUE(OverheadFrom(stated).empty());
}

}  // namespace
}  // namespace resmgr
