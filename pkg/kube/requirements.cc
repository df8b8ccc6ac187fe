// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/requirements.h"

#include <algorithm>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/kube/resources_annotation.h"

namespace resmgr {

namespace {

// The kubelet gives Burstable containers 1000 - 1000 * request / capacity (whole numbers), kept
// within these; 999 also stands for "asks for nothing", and 2 (3 in later versions) for "nearly
// everything" (pkg/kubelet/qos/policy.go in kubernetes).
constexpr int64_t kMinBurstableOomScore = 2;
constexpr int64_t kMaxTellingOomScore = 998;

Bytes BurstableMemoryRequest(const LinuxResources& resources, Bytes capacity) {
  const int64_t score = resources.oom_score_adj.value_or(0);
  if (capacity.value <= 0 || score < kMinBurstableOomScore || score > kMaxTellingOomScore) {
    return Bytes{0};
  }
  const int64_t thousandths = 1000 - score;
  // Divided first, so that no capacity overflows; then the rest.
  const int64_t request =
      capacity.value / 1000 * thousandths + capacity.value % 1000 * thousandths / 1000;
  const int64_t limit = resources.memory_limit.value_or(0);
  return Bytes{limit > 0 ? std::min(request, limit) : request};
}

}  // namespace

MilliCpu CpuLimitOf(const LinuxResources& resources) {
  return MilliCpuFromQuota(resources.cpu_quota.value_or(0),
                           resources.cpu_period.value_or(kDefaultCpuPeriod));
}

Requirements EstimateRequirements(const LinuxResources& resources, QosClass qos,
                                  Bytes memory_capacity) {
  const int64_t shares = resources.cpu_shares.value_or(0);
  const MilliCpu quota = CpuLimitOf(resources);
  Requirements requirements;
  requirements.cpu_request = MilliCpuFromShares(shares);
  requirements.memory_limit = Bytes{std::max<int64_t>(resources.memory_limit.value_or(0), 0)};
  if (qos == QosClass::kGuaranteed) {
    if (shares >= kMaxShares && quota.value > requirements.cpu_request.value) {
      requirements.cpu_request = quota;
    }
    requirements.cpu_limit = requirements.cpu_request;
    requirements.memory_request = requirements.memory_limit;
    return requirements;
  }
  requirements.cpu_limit = quota;
  if (qos == QosClass::kBurstable) {
    requirements.memory_request = BurstableMemoryRequest(resources, memory_capacity);
    requirements.memory_estimated = requirements.memory_request.value > 0;
  }
  return requirements;
}

ResolvedRequirements ResolveRequirements(const LinuxResources& resources, QosClass qos,
                                         Bytes memory_capacity, const StringMap& pod_annotations,
                                         std::string_view container_name) {
  ResolvedRequirements resolved{EstimateRequirements(resources, qos, memory_capacity), OkStatus()};
  const auto annotation = pod_annotations.find(kResourcesAnnotation);
  if (annotation == pod_annotations.end()) return resolved;
  const auto annotated = ParseResourcesAnnotation(annotation->second, container_name);
  if (!annotated.ok()) {
    resolved.annotation = annotated.status();
  } else if (annotated->has_value()) {
    resolved.requirements = **annotated;
  }
  return resolved;
}

bool MayAskForMore(const Container& container) {
  const MilliCpu told = MilliCpuFromShares(kMaxShares);
  if (container.requested.cpu_shares.value_or(0) < kMaxShares) return false;
  if (container.requirements.cpu_request != told) return false;
  const MilliCpu limit = CpuLimitOf(container.requested);
  return limit.value == 0 || limit > told;
}

}  // namespace resmgr
