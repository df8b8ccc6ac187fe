// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/requirements.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/pod_division.h"
#include "pkg/model/resources_annotation.h"

namespace resmgr {

namespace {

// The kubelet gives Burstable containers 1000 - 1000 * request / capacity (whole numbers), kept
// within these; 999 also stands for "asks for nothing", and 2 (3 in later versions) for "nearly
// everything" (pkg/kubelet/qos/policy.go in kubernetes).
constexpr int64_t kMinBurstableOomScore = 2;
constexpr int64_t kMaxTellingOomScore = 998;
constexpr int64_t kMaxBurstableOomScore = 999;

Bytes Thousandths(Bytes capacity, int64_t thousandths) {
  return Bytes{MultiplyDivideDown(capacity.value, thousandths, 1000)};
}

Bytes MemoryLimitOf(const LinuxResources& resources) {
  return Bytes{std::max<int64_t>(resources.memory_limit.value_or(0), 0)};
}

Bytes BurstableMemoryRequest(const LinuxResources& resources, Bytes capacity) {
  const int64_t score = resources.oom_score_adj.value_or(0);
  if (capacity.value <= 0 || score < kMinBurstableOomScore || score > kMaxTellingOomScore) {
    return Bytes{0};
  }
  const Bytes request = Thousandths(capacity, 1000 - score);
  const Bytes limit = MemoryLimitOf(resources);
  return limit.value > 0 ? std::min(request, limit) : request;
}

// The most that a Burstable container with this OOM score can have asked for. The kubelet's figure
// of the node's memory may differ a little from ours, and its rounding differs between versions.
Bytes MostMemoryRequest(const LinuxResources& resources, Bytes capacity) {
  constexpr Bytes kAny{std::numeric_limits<int64_t>::max()};
  const Bytes limit = MemoryLimitOf(resources);
  const Bytes most = limit.value > 0 ? limit : kAny;
  const int64_t score = resources.oom_score_adj.value_or(0);
  // The lowest two scores stand for all larger requests.
  if (capacity.value <= 0 || score <= kMinBurstableOomScore + 1 || score > kMaxBurstableOomScore) {
    return most;
  }
  const int64_t thousandths = 1000 - score;
  return std::min(most, Thousandths(capacity, thousandths + thousandths / 50 + 2));
}

// Combines the request and the annotation of one container.
class Resolver {
 public:
  Resolver(const LinuxResources& resources, const Pod& pod, Bytes capacity,
           const Requirements& annotated)
      : resources_(resources),
        pod_(pod),
        capacity_(capacity),
        annotated_(annotated),
        needs_(EstimateRequirements(resources, pod.qos, capacity)),
        limit_(CpuLimitOf(resources)) {}

  ResolvedRequirements Run() {
    if (resources_.cpu_shares.value_or(0) == 0 && pod_.qos != QosClass::kBestEffort) {
      return {annotated_ == Requirements() ? needs_ : annotated_, OkStatus()};
    }
    ResolveCpu();
    ResolveMemory();
    return {needs_, OkStatus(), std::move(note_)};
  }

 private:
  void ResolveCpu() {
    const bool none = annotated_.cpu_request.value == 0 && annotated_.cpu_limit.value == 0;
    const bool agrees = pod_.qos == QosClass::kBestEffort
                            ? none
                            : SharesFromMilliCpu(annotated_.cpu_request) == *resources_.cpu_shares;
    if (!agrees && none && HasAllCpuOf(pod_, resources_)) {
      needs_.cpu_request = MilliCpu{0};
      needs_.cpu_limit = limit_;
      needs_.cpu_of_pod = true;
      return;
    }
    if (!agrees || !LimitAgrees()) {
      note_ += fmt::format("; the request contradicts its annotation's CPU of {}m (limit {}m)",
                           annotated_.cpu_request.value, annotated_.cpu_limit.value);
    }
    if (!agrees) return;
    const MilliCpu told = needs_.cpu_request;
    needs_.cpu_request = annotated_.cpu_request;
    if (!SharesTell(told) && limit_.value > 0) {
      // The quota of a Guaranteed container usually equals its request and is more exact than the
      // shares.
      const bool by_quota = pod_.qos == QosClass::kGuaranteed && !LimitAgrees();
      needs_.cpu_request = by_quota ? told
                                    : std::min(annotated_.cpu_request,
                                               std::max(limit_, MilliCpuFromShares(kMaxShares)));
    }
    if (annotated_.cpu_limit.value > 0 && LimitAgrees()) needs_.cpu_limit = annotated_.cpu_limit;
    if (pod_.qos == QosClass::kGuaranteed) {
      needs_.cpu_limit = std::max(needs_.cpu_limit, needs_.cpu_request);
    }
  }

  // A request without a quota says nothing about the limit: the kubelet may set none. A limit that
  // the container does not have itself may be its pod's.
  bool LimitAgrees() const {
    const int64_t quota = QuotaOrNone(resources_.cpu_quota);
    if (quota == kNoQuota) return true;
    if (annotated_.cpu_limit.value == 0) return limit_ == CpuLimitOf(pod_.resources);
    const int64_t period = resources_.cpu_period.value_or(kDefaultCpuPeriod);
    return period > 0 && quota == QuotaFromMilliCpu(annotated_.cpu_limit, period);
  }

  void ResolveMemory() {
    const Bytes limit = MemoryLimitOf(resources_);
    const Bytes told = annotated_.memory_request;
    const bool of_pod = annotated_.memory_limit.value == 0 && limit.value > 0 &&
                        limit == MemoryLimitOf(pod_.resources);
    const bool agrees = annotated_.memory_limit == limit || of_pod;
    bool fits = told <= MostMemoryRequest(resources_, capacity_);
    if (pod_.qos == QosClass::kBestEffort) fits = told.value == 0;
    if (pod_.qos == QosClass::kGuaranteed) fits = told <= limit;
    if (!agrees || !fits) {
      note_ += fmt::format(
          "; the request contradicts its annotation's memory of {} bytes (limit {} bytes)",
          told.value, annotated_.memory_limit.value);
      return;
    }
    needs_.memory_request = told;
    needs_.memory_estimated = false;
    needs_.memory_of_pod = of_pod && told.value == 0 && pod_.qos == QosClass::kGuaranteed;
  }

  const LinuxResources& resources_;
  const Pod& pod_;
  const Bytes capacity_;
  const Requirements& annotated_;
  Requirements needs_;
  const MilliCpu limit_;
  std::string note_;
};

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
  requirements.memory_limit = MemoryLimitOf(resources);
  if (qos == QosClass::kGuaranteed) {
    if (shares >= kMaxShares && quota.value > requirements.cpu_request.value) {
      requirements.cpu_request = quota;
    }
    // The least quota is that of all small limits.
    const bool above =
        quota > requirements.cpu_request && resources.cpu_quota.value_or(0) > kMinQuota;
    requirements.cpu_limit = above ? quota : requirements.cpu_request;
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

QosClass DerivedQos(const LinuxResources& resources) {
  const int64_t shares = resources.cpu_shares.value_or(0);
  const MilliCpu limit = CpuLimitOf(resources);
  const bool limited = limit.value > 0 && MemoryLimitOf(resources).value > 0;
  if (limited && (shares == 0 || shares == SharesFromMilliCpu(limit))) return QosClass::kGuaranteed;
  const bool asks = shares > kMinShares || limit.value > 0 || MemoryLimitOf(resources).value > 0;
  return asks ? QosClass::kBurstable : QosClass::kBestEffort;
}

ResolvedRequirements ResolveRequirements(const LinuxResources& resources, const Pod& pod,
                                         Bytes memory_capacity, std::string_view container_name) {
  const auto estimate = [&](Status annotation) -> ResolvedRequirements {
    return {EstimateRequirements(resources, pod.qos, memory_capacity), std::move(annotation)};
  };
  const auto annotation = pod.annotations.find(kResourcesAnnotation);
  if (annotation == pod.annotations.end()) return estimate(OkStatus());
  const auto annotated = ParseResourcesAnnotation(annotation->second, container_name);
  if (!annotated.ok()) return estimate(annotated.status());
  if (!annotated->has_value()) return estimate(OkStatus());
  return Resolver(resources, pod, memory_capacity, **annotated).Run();
}

std::string_view WhyCpuIsOfPod(const Requirements& requirements) {
  if (requirements.cpu_of_pod) return "no CPU request of its own, but its pod's";
  if (requirements.cpu_limit > requirements.cpu_request) return "CPU limit above the request";
  return "";
}

bool MayAskForMore(const Container& container) {
  const MilliCpu told = MilliCpuFromShares(kMaxShares);
  if (container.requested.cpu_shares.value_or(0) < kMaxShares) return false;
  if (container.requirements.cpu_request != told) return false;
  const MilliCpu limit = CpuLimitOf(container.requested);
  return limit.value == 0 || limit > told;
}

}  // namespace resmgr
