// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/needs.h"

#include <algorithm>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/requirements.h"

namespace resmgr {
namespace {

constexpr int64_t kMilliPerCpu = 1000;

// The conversion of Kubernetes and runc to cgroup v2 (KEP 2254) and back.
int64_t ByWayOfWeight(int64_t shares) {
  constexpr int64_t kWeights = 10'000 - 1;
  constexpr int64_t kAllShares = kMaxShares - kMinShares;
  const int64_t weight = 1 + (shares - kMinShares) * kWeights / kAllShares;
  return kMinShares + (weight - 1) * kAllShares / kWeights;
}

// The request, given the formerly `known` one and the present resources. Shares at their upper
// limit neither confirm nor contradict the known request, which stays unless a quota determines it
// (in a Guaranteed container) or allows less.
MilliCpu RequestNow(MilliCpu known, const Requirements& now, const LinuxResources& resources,
                    QosClass qos) {
  const bool open = resources.cpu_shares.value_or(0) >= kMaxShares && !SharesTell(known);
  const MilliCpu limit = CpuLimitOf(resources);
  if (!open || (qos == QosClass::kGuaranteed && limit.value > 0)) return now.cpu_request;
  return limit.value > 0 ? std::min(known, std::max(limit, now.cpu_request)) : known;
}

}  // namespace

Bytes MemoryCapacity(const Machine& machine) {
  Bytes memory;
  for (const NumaNode& node : machine.nodes())
    memory = memory + node.memory;
  return memory;
}

Requirements ReportedNeeds(const Pod& pod, const RuntimeContainer& reported,
                           Bytes memory_capacity) {
  Requirements needs =
      ResolveRequirements(reported.resources, pod, memory_capacity, reported.name).requirements;
  if (!reported.resources.cpu_shares || needs.cpu_of_pod) return needs;
  const Requirements now = EstimateRequirements(reported.resources, pod.qos, memory_capacity);
  // Shares are too coarse to contradict the request that they were computed from.
  const bool as_told = SharesFromMilliCpu(needs.cpu_request) == *reported.resources.cpu_shares;
  const MilliCpu told = needs.cpu_request;
  if (!as_told || !SharesTell(told)) {
    needs.cpu_request = RequestNow(told, now, reported.resources, pod.qos);
  }
  const bool same = as_told && needs.cpu_request == told;
  if (!same || pod.qos != QosClass::kGuaranteed) needs.cpu_limit = now.cpu_limit;
  if (pod.qos != QosClass::kGuaranteed) return needs;
  const MilliCpu quota = CpuLimitOf(reported.resources);
  // A difference by the rounding of small requests does not count.
  if (quota.value - needs.cpu_request.value >= kMilliPerCpu) {
    needs.cpu_request = needs.cpu_limit = quota;
  }
  return needs;
}

LinuxResources ReportedRequest(const RuntimeContainer& reported, const Requirements& needs) {
  LinuxResources requested = reported.resources;
  if (requested.cpu_shares && MilliCpuFromShares(*requested.cpu_shares) < needs.cpu_request) {
    requested.cpu_shares = SharesFromMilliCpu(needs.cpu_request);
  }
  return requested;
}

void TakeCpuInForce(const RuntimeContainer& reported, const Requirements& in_force,
                    Container& container) {
  container.requirements.cpu_request = in_force.cpu_request;
  container.requirements.cpu_limit = in_force.cpu_limit;
  const LinuxResources requested = ReportedRequest(reported, in_force);
  container.requested.cpu_shares = requested.cpu_shares;
  container.requested.cpu_quota = requested.cpu_quota;
  container.requested.cpu_period = requested.cpu_period;
}

bool IsSameByWeight(int64_t shares, const std::optional<int64_t>& reported) {
  return reported == shares || reported == ByWayOfWeight(shares);
}

bool TellsCpuInForce(const SavedContainer& saved, const LinuxResources& in_force) {
  const int64_t now = in_force.cpu_shares.value_or(0);
  if (now == 0) return true;
  const auto sent = [](const auto& later, const auto& placed, const auto& requested) {
    return later ? later : placed ? placed : requested;
  };
  const NumbersSetLater later = saved.set_later.value_or(NumbersSetLater{});
  const Placement& placed = saved.placement;
  const std::optional<int64_t> known =
      sent(later.cpu_shares, placed.cpu_shares, saved.requested.cpu_shares);
  if (!known) return false;
  if (now == *known && now < kMaxShares) return true;
  // Rounding hides small differences, and the upper limit large ones, which the quota shows.
  const std::optional<int64_t> quota =
      sent(later.cpu_quota, placed.cpu_quota, saved.requested.cpu_quota);
  return IsSameByWeight(*known, now) && QuotaOrNone(quota) == QuotaOrNone(in_force.cpu_quota);
}

Requirements NeedsAfter(Requirements needs, const LinuxResources& before,
                        const LinuxResources& after, QosClass qos, Bytes memory_capacity) {
  const Requirements now = EstimateRequirements(after, qos, memory_capacity);
  if (before.cpu_shares != after.cpu_shares || before.cpu_quota != after.cpu_quota ||
      before.cpu_period != after.cpu_period) {
    needs.cpu_limit = now.cpu_limit;
    if (needs.cpu_of_pod) {
      needs.cpu_limit = CpuLimitOf(after);
    } else {
      needs.cpu_request = RequestNow(needs.cpu_request, now, after, qos);
      if (qos == QosClass::kGuaranteed) {
        needs.cpu_limit = std::max(needs.cpu_limit, needs.cpu_request);
      }
    }
  }
  if (before.memory_limit != after.memory_limit || before.oom_score_adj != after.oom_score_adj) {
    needs.memory_limit = now.memory_limit;
    if (!needs.memory_of_pod) {
      needs.memory_request = now.memory_request;
      needs.memory_estimated = now.memory_estimated;
    }
  }
  return needs;
}

}  // namespace resmgr
