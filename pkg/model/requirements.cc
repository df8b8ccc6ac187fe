// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/requirements.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/resources_annotation.h"

namespace resmgr {
namespace {

// The kubelet gives Burstable containers 1000 - 1000 * request / capacity (whole numbers), kept
// within limits: the largest, 999, also stands for "asks for nothing", the smallest, 2 (3 in later
// versions), for "nearly everything" (pkg/kubelet/qos/policy.go in kubernetes).
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

// The most memory that a Burstable container with this OOM score can have requested. The margin is
// for a kubelet that knows a slightly different memory of the node, or rounds differently.
Bytes MostMemoryRequest(const LinuxResources& resources, Bytes capacity) {
  constexpr Bytes kAny{std::numeric_limits<int64_t>::max()};
  const Bytes limit = MemoryLimitOf(resources);
  const Bytes most = limit.value > 0 ? limit : kAny;
  const int64_t score = resources.oom_score_adj.value_or(0);
  // Each of the lowest two scores stands for all larger requests, so it bounds nothing.
  if (capacity.value <= 0 || score <= kMinBurstableOomScore + 1 || score > kMaxBurstableOomScore) {
    return most;
  }
  const int64_t thousandths = 1000 - score;
  return std::min(most, Thousandths(capacity, thousandths + thousandths / 50 + 2));
}

// Whether shares and quota are those that a kubelet derives from the pod's limit alone, for a
// container without CPU request and limit.
bool HasAllCpuOf(const Pod& pod, const LinuxResources& resources) {
  const int64_t shares = resources.cpu_shares.value_or(0);
  const MilliCpu limit = CpuLimitOf(pod.resources);
  if (shares == 0 || limit != CpuLimitOf(resources)) return false;
  // The least quota stands for all small limits, but the shares are those of the exact limit.
  if (pod.resources.cpu_quota == kMinQuota) return shares <= SharesFromMilliCpu(limit);
  if (limit.value > 0) return shares == SharesFromMilliCpu(limit);
  // The kubelet sets no quotas. In a Guaranteed pod the limit is the request, which the shares
  // show.
  return pod.qos == QosClass::kGuaranteed && resources.cpu_shares == pod.resources.cpu_shares;
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
      // A Guaranteed container's quota usually equals its request, and is more exact than its
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

  // Whether the annotation's limit agrees with the request. A request without a quota agrees with
  // any limit, since kubelets may set no quotas. If the annotation has no limit, the request's may
  // be the pod's.
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

constexpr int64_t kGuaranteedOomScore = -997;
constexpr int64_t kBestEffortOomScore = 1000;
// 3, as in the kubelet: as far above 0 as the score of Guaranteed is above -1000.
constexpr int64_t kLeastBurstableOomScore = 1000 + kGuaranteedOomScore;

bool IsGuaranteed(const Requirements& needs) {
  return needs.cpu_limit.value > 0 && needs.memory_limit.value > 0 &&
         needs.cpu_request == needs.cpu_limit && needs.memory_request == needs.memory_limit;
}

// 1000 * request / capacity, rounded down, also if the product exceeds 64 bits.
int64_t ThousandthsOf(Bytes request, Bytes capacity) {
  if (capacity.value <= 0) return 0;
  return std::min(MultiplyDivideDown(1000, request.value, capacity.value), kBestEffortOomScore);
}

// Limits the request of each container, so that sums of requests stay within 64 bits.
constexpr int64_t kMost = int64_t{1} << 48;

int64_t Capped(int64_t value) {
  return std::clamp<int64_t>(value, 0, kMost);
}

// nullopt if the request is not known: the largest shares stand for many requests.
std::optional<MilliCpu> CpuRequestOf(const Pod& pod) {
  const int64_t shares = pod.resources.cpu_shares.value_or(0);
  if (shares <= 0) return std::nullopt;
  if (shares < kMaxShares) return MilliCpuFromShares(shares);
  const MilliCpu limit = CpuLimitOf(pod.resources);
  if (pod.qos != QosClass::kGuaranteed || limit.value == 0) return std::nullopt;
  return limit;
}

bool HasAllMemoryOf(const Pod& pod, const LinuxResources& resources) {
  return resources.memory_limit.value_or(0) > 0 &&
         resources.memory_limit == pod.resources.memory_limit;
}

// A kind of a pod's resources, by the members that have a container's part of it.
template <typename Amount>
struct Kind {
  bool Requirements::*of_pod;
  Amount Requirements::*request;
};

// Whether an annotation states the request that the container has.
template <typename Amount>
bool AnnotationTells(const Pod& pod, const Container& container, Kind<Amount> kind) {
  const auto annotation = pod.annotations.find(kResourcesAnnotation);
  if (annotation == pod.annotations.end()) return false;
  const auto told = ParseResourcesAnnotation(annotation->second, container.name);
  return told.ok() && told->has_value() &&
         (**told).*kind.request == container.requirements.*kind.request;
}

template <typename Amount>
int64_t SumOfOwn(std::span<const PodMember> members, Kind<Amount> kind) {
  int64_t sum = 0;
  for (const PodMember& member : members) {
    if (!(member.needs.*kind.of_pod)) sum += Capped((member.needs.*kind.request).value);
  }
  return sum;
}

// DivideAmong for one kind of resources, of which the pod has `whole`. `has_all(resources)`:
// whether a container with this request seems to ask for all of it.
template <typename Amount, typename HasAll>
void Divide(const Pod& pod, int64_t whole, Kind<Amount> kind, const HasAll& has_all,
            std::span<PodMember> members) {
  const auto is_of_pod = [kind](const PodMember& member) { return member.needs.*kind.of_pod; };
  const auto has_rest = [kind](const Requirements& needs) {
    return needs.*kind.of_pod && (needs.*kind.request).value > 0;
  };
  // The member that has the rest keeps it.
  auto holder = std::ranges::find_if(members, has_rest, &PodMember::needs);
  if (std::ranges::any_of(members, is_of_pod) || SumOfOwn<Amount>(members, kind) > whole) {
    for (PodMember& member : members) {
      if (member.fixed || is_of_pod(member) || !has_all(member.container->requested)) continue;
      member.needs.*kind.of_pod = !AnnotationTells(pod, *member.container, kind);
    }
  }
  // The next attempt of a container gets back what the container had before it ended.
  const auto heir = std::ranges::find_if(members, [&](const PodMember& member) {
    return is_of_pod(member) && member.former != nullptr && has_rest(*member.former);
  });
  if (heir != members.end()) holder = heir;
  int64_t rest = std::max<int64_t>(whole - SumOfOwn<Amount>(members, kind), 0);
  const auto give_rest = [&](PodMember& member) {
    member.needs.*kind.request = Amount{std::exchange(rest, 0)};
  };
  if (holder != members.end()) give_rest(*holder);
  for (auto member = members.begin(); member != members.end(); ++member) {
    if (member != holder && is_of_pod(*member)) give_rest(*member);
  }
}

void DivideCpu(const Pod& pod, std::span<PodMember> members) {
  const std::optional<MilliCpu> request = CpuRequestOf(pod);
  if (!request) return;
  Divide(
      pod, request->value, Kind<MilliCpu>{&Requirements::cpu_of_pod, &Requirements::cpu_request},
      [&pod](const LinuxResources& resources) { return HasAllCpuOf(pod, resources); }, members);
  for (PodMember& member : members) {
    if (member.needs.cpu_of_pod) member.needs.cpu_limit = CpuLimitOf(member.container->requested);
  }
}

// Divides only the memory of Guaranteed pods, whose limit is the request: no message has the memory
// request of pods of other classes.
void DivideMemory(const Pod& pod, std::span<PodMember> members) {
  const int64_t whole = pod.resources.memory_limit.value_or(0);
  if (whole <= 0 || pod.qos != QosClass::kGuaranteed) return;
  Divide(
      pod, whole, Kind<Bytes>{&Requirements::memory_of_pod, &Requirements::memory_request},
      [&pod](const LinuxResources& resources) { return HasAllMemoryOf(pod, resources); }, members);
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
  requirements.memory_limit = MemoryLimitOf(resources);
  if (qos == QosClass::kGuaranteed) {
    if (shares >= kMaxShares && quota.value > requirements.cpu_request.value) {
      requirements.cpu_request = quota;
    }
    // The least quota stands for all small limits, so it does not show a limit above the request.
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
  return std::clamp(1000 - ThousandthsOf(memory_request, memory_capacity), kLeastBurstableOomScore,
                    kMaxBurstableOomScore);
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

void DivideAmong(const Pod& pod, std::span<PodMember> members) {
  DivideCpu(pod, members);
  DivideMemory(pod, members);
}

}  // namespace resmgr
