// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/snapshot.h"

#include <algorithm>

#include "pkg/kube/cpu_arithmetic.h"

namespace resmgr {
namespace {

constexpr int64_t kMostMilliCpus = 1'000'000;
constexpr int64_t kMostMemory = int64_t{1} << 44;

MilliCpu CpuOf(const LinuxResources& stated) {
  const MilliCpu by_shares = MilliCpuFromShares(stated.cpu_shares.value_or(0));
  const int64_t quota = QuotaOrNone(stated.cpu_quota);
  if (quota == kNoQuota) return by_shares;
  const MilliCpu by_quota = MilliCpuFromQuota(quota, stated.cpu_period.value_or(kDefaultCpuPeriod));
  const bool told = by_shares.value > 0 || (stated.cpu_shares && quota <= kMinQuota);
  return told ? std::min(by_shares, by_quota) : by_quota;
}

}  // namespace

Overhead& Overhead::operator+=(const Overhead& other) {
  cpu = cpu + other.cpu;
  memory = memory + other.memory;
  return *this;
}

Overhead& Overhead::operator-=(const Overhead& other) {
  cpu = cpu - other.cpu;
  memory = memory - other.memory;
  return *this;
}

HeldOverheads& HeldOverheads::operator+=(const HeldOverheads& other) {
  shown += other.shown;
  promised = promised + other.promised;
  return *this;
}

HeldOverheads& HeldOverheads::operator-=(const HeldOverheads& other) {
  shown -= other.shown;
  promised = promised - other.promised;
  return *this;
}

Overhead OverheadFrom(const LinuxResources& stated) {
  return {.cpu = {std::clamp<int64_t>(CpuOf(stated).value, 0, kMostMilliCpus)},
          .memory = {std::clamp<int64_t>(stated.memory_limit.value_or(0), 0, kMostMemory)}};
}

}  // namespace resmgr
