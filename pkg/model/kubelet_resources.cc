// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/kubelet_resources.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "pkg/kube/cpu_arithmetic.h"

namespace resmgr {

namespace {

constexpr int64_t kGuaranteedOomScore = -997;
constexpr int64_t kBestEffortOomScore = 1000;
// Just above Guaranteed, had that begun at 0, and just below BestEffort.
constexpr int64_t kLeastBurstableOomScore = 1000 + kGuaranteedOomScore;
constexpr int64_t kMostBurstableOomScore = kBestEffortOomScore - 1;

bool IsGuaranteed(const Requirements& needs) {
  return needs.cpu_limit.value > 0 && needs.memory_limit.value > 0 &&
         needs.cpu_request == needs.cpu_limit && needs.memory_request == needs.memory_limit;
}

// 1000 * request / capacity, rounded down, where the product may leave 64 bits.
int64_t Thousandths(Bytes request, Bytes capacity) {
  if (capacity.value <= 0) return 0;
  return std::min(MultiplyDivideDown(1000, request.value, capacity.value), kBestEffortOomScore);
}

}  // namespace

QosClass QosOf(std::span<const Requirements> containers) {
  if (std::ranges::all_of(containers,
                          [](const Requirements& needs) { return needs == Requirements(); })) {
    return QosClass::kBestEffort;
  }
  return std::ranges::all_of(containers, IsGuaranteed) ? QosClass::kGuaranteed
                                                       : QosClass::kBurstable;
}

int64_t OomScoreAdj(QosClass qos, Bytes memory_request, Bytes memory_capacity) {
  switch (qos) {
    case QosClass::kGuaranteed:
      return kGuaranteedOomScore;
    case QosClass::kBestEffort:
      return kBestEffortOomScore;
    case QosClass::kBurstable:
      break;
  }
  return std::clamp(1000 - Thousandths(memory_request, memory_capacity), kLeastBurstableOomScore,
                    kMostBurstableOomScore);
}

LinuxResources KubeletResources(const Requirements& requirements, QosClass qos, Bytes oom_request,
                                Bytes memory_capacity) {
  const MilliCpu request =
      requirements.cpu_request.value > 0 ? requirements.cpu_request : requirements.cpu_limit;
  LinuxResources resources;
  resources.cpu_shares = SharesFromMilliCpu(request);
  resources.cpu_period = kDefaultCpuPeriod;
  if (requirements.cpu_limit.value > 0) {
    resources.cpu_quota = QuotaFromMilliCpu(requirements.cpu_limit);
  }
  if (requirements.memory_limit.value > 0) {
    resources.memory_limit = requirements.memory_limit.value;
  }
  resources.oom_score_adj = OomScoreAdj(qos, oom_request, memory_capacity);
  return resources;
}

std::string CgroupParentOf(QosClass qos, const PodUid& uid) {
  std::string_view parent;
  if (qos == QosClass::kBurstable) parent = "burstable/";
  if (qos == QosClass::kBestEffort) parent = "besteffort/";
  return fmt::format("/kubepods/{}pod{}", parent, uid.value());
}

}  // namespace resmgr
