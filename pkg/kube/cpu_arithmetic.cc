// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/cpu_arithmetic.h"

#include <algorithm>
#include <limits>

namespace resmgr {

namespace {

// Any user may write the values in requests, so products may exceed 64 bits.
__extension__ using Wide = __int128;

int64_t Saturate(Wide value) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  return value > kMax ? kMax : static_cast<int64_t>(value);
}

int64_t MultiplyDivideUp(int64_t a, int64_t b, int64_t divisor) {
  return Saturate((Wide{a} * b + divisor - 1) / divisor);
}

}  // namespace

int64_t MultiplyDivideDown(int64_t a, int64_t b, int64_t divisor) {
  return Saturate(Wide{a} * b / divisor);
}

int64_t SharesFromMilliCpu(MilliCpu request) {
  const int64_t shares =
      MultiplyDivideDown(std::max<int64_t>(request.value, 0), kSharesPerCpu, 1000);
  return std::clamp(shares, kMinShares, kMaxShares);
}

MilliCpu MilliCpuFromShares(int64_t shares) {
  if (shares <= kMinShares) return MilliCpu{0};
  return MilliCpu{MultiplyDivideUp(std::min(shares, kMaxShares), 1000, kSharesPerCpu)};
}

bool SharesTell(MilliCpu request) {
  return SharesFromMilliCpu(request) < kMaxShares;
}

int64_t QuotaFromMilliCpu(MilliCpu limit, int64_t period) {
  if (limit.value <= 0) return kNoQuota;
  return std::max(MultiplyDivideDown(limit.value, period, 1000), kMinQuota);
}

MilliCpu MilliCpuFromQuota(int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return MilliCpu{0};
  return MilliCpu{MultiplyDivideUp(quota, 1000, period)};
}

}  // namespace resmgr
