// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "pkg/base/units.h"

namespace resmgr {

// Converts CPU requests and limits into cgroup values as kubelets do, and back. Rules and constants
// are those of the kubelet (MilliCPUToShares and MilliCPUToQuota, pkg/kubelet/cm/helpers_linux.go
// in Kubernetes 1.33).

inline constexpr int64_t kMinShares = 2;  // also the value for no request
inline constexpr int64_t kMaxShares = 262144;
inline constexpr int64_t kSharesPerCpu = 1024;
inline constexpr int64_t kDefaultCpuPeriod = 100'000;  // microseconds
inline constexpr int64_t kMinQuota = 1'000;            // microseconds
inline constexpr int64_t kNoQuota = -1;

// a * b / divisor without intermediate overflow, rounded down; a result beyond 64 bits becomes
// their maximum.
int64_t MultiplyDivideDown(int64_t a, int64_t b, int64_t divisor);

// Rounds down, within [kMinShares, kMaxShares].
int64_t SharesFromMilliCpu(MilliCpu request);

// The exact inverse for 3 to 256000 milli-CPUs (256 CPUs): rounding up undoes the kubelet's
// rounding down. At most kMinShares means no request, 0; more than kMaxShares counts as kMaxShares.
MilliCpu MilliCpuFromShares(int64_t shares);

// Whether the shares of this request are below kMaxShares, which stand for all requests from 256
// CPUs on. Only the CFS quota distinguishes those: without a quota the amount of the request is
// lost.
bool SharesTell(MilliCpu request);

// Normalizes a requested or reported quota in microseconds: kNoQuota if it is absent, 0 or
// negative, which all mean that there is no quota.
constexpr int64_t QuotaOrNone(const std::optional<int64_t>& quota) {
  return quota.value_or(0) > 0 ? *quota : kNoQuota;
}

// Returns microseconds per period, at least kMinQuota; kNoQuota for a limit of 0. The period is in
// microseconds and above 0.
int64_t QuotaFromMilliCpu(MilliCpu limit, int64_t period = kDefaultCpuPeriod);

// Returns 0 (no limit) if quota or period is not positive. Rounds up, so that it is the inverse of
// QuotaFromMilliCpu for limits of 10 milli-CPUs or more and periods of 1000 microseconds or more.
MilliCpu MilliCpuFromQuota(int64_t quota, int64_t period);

}  // namespace resmgr
