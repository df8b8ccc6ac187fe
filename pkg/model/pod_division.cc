// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/pod_division.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/requirements.h"
#include "pkg/model/resources_annotation.h"

namespace resmgr {
namespace {

// This limit of a container's request keeps sums of requests within 64 bits.
constexpr int64_t kMost = int64_t{1} << 48;

int64_t Capped(int64_t value) {
  return std::clamp<int64_t>(value, 0, kMost);
}

// nullopt where it is not known: the largest shares stand for many requests.
std::optional<MilliCpu> CpuRequestOf(const Pod& pod) {
  const int64_t shares = pod.resources.cpu_shares.value_or(0);
  if (shares <= 0) return std::nullopt;
  if (shares < kMaxShares) return MilliCpuFromShares(shares);
  const MilliCpu limit = CpuLimitOf(pod.resources);
  if (pod.qos != QosClass::kGuaranteed || limit.value == 0) return std::nullopt;
  return limit;
}

bool AnnotationTellsCpu(const Pod& pod, const Container& container) {
  const auto annotation = pod.annotations.find(kResourcesAnnotation);
  if (annotation == pod.annotations.end()) return false;
  const auto told = ParseResourcesAnnotation(annotation->second, container.name);
  return told.ok() && told->has_value() &&
         (*told)->cpu_request == container.requirements.cpu_request;
}

bool HasAllMemoryOf(const Pod& pod, const LinuxResources& resources) {
  return resources.memory_limit.value_or(0) > 0 &&
         resources.memory_limit == pod.resources.memory_limit;
}

int64_t SumOfOwnCpu(std::span<const PodMember> members) {
  int64_t sum = 0;
  for (const PodMember& member : members) {
    if (!member.needs.cpu_of_pod) sum += Capped(member.needs.cpu_request.value);
  }
  return sum;
}

int64_t SumOfOwnMemory(std::span<const PodMember> members) {
  int64_t sum = 0;
  for (const PodMember& member : members) {
    if (!member.needs.memory_of_pod) sum += Capped(member.needs.memory_request.value);
  }
  return sum;
}

void DivideCpu(const Pod& pod, std::span<PodMember> members) {
  const std::optional<MilliCpu> request = CpuRequestOf(pod);
  if (!request) return;
  const int64_t whole = request->value;
  const bool divided =
      std::ranges::any_of(members, [](const PodMember& member) { return member.needs.cpu_of_pod; });
  if (divided || SumOfOwnCpu(members) > whole) {
    for (PodMember& member : members) {
      if (member.fixed || member.needs.cpu_of_pod) continue;
      if (!HasAllCpuOf(pod, member.container->requested)) continue;
      if (AnnotationTellsCpu(pod, *member.container)) continue;
      member.needs.cpu_of_pod = true;
      member.needs.cpu_limit = CpuLimitOf(member.container->requested);
    }
  }
  int64_t rest = std::max<int64_t>(whole - SumOfOwnCpu(members), 0);
  for (PodMember& member : members) {
    if (member.needs.cpu_of_pod) member.needs.cpu_request = MilliCpu{std::exchange(rest, 0)};
  }
}

// Works only if the limit is the request: otherwise no message has the pod's request.
void DivideMemory(const Pod& pod, std::span<PodMember> members) {
  const int64_t whole = pod.resources.memory_limit.value_or(0);
  if (whole <= 0 || pod.qos != QosClass::kGuaranteed) return;
  const bool divided = std::ranges::any_of(
      members, [](const PodMember& member) { return member.needs.memory_of_pod; });
  if (divided || SumOfOwnMemory(members) > whole) {
    for (PodMember& member : members) {
      const bool all = HasAllMemoryOf(pod, member.container->requested);
      if (!member.fixed && all) member.needs.memory_of_pod = true;
    }
  }
  int64_t rest = std::max<int64_t>(whole - SumOfOwnMemory(members), 0);
  for (PodMember& member : members) {
    if (member.needs.memory_of_pod) member.needs.memory_request = Bytes{std::exchange(rest, 0)};
  }
}

}  // namespace

bool HasAllCpuOf(const Pod& pod, const LinuxResources& resources) {
  const int64_t shares = resources.cpu_shares.value_or(0);
  const MilliCpu limit = CpuLimitOf(pod.resources);
  if (shares == 0 || limit != CpuLimitOf(resources)) return false;
  // The least quota is that of all small limits, and the shares are those of the limit itself.
  if (pod.resources.cpu_quota == kMinQuota) return shares <= SharesFromMilliCpu(limit);
  if (limit.value > 0) return shares == SharesFromMilliCpu(limit);
  // A kubelet without quotas; the limit of a Guaranteed pod is its request.
  return pod.qos == QosClass::kGuaranteed && resources.cpu_shares == pod.resources.cpu_shares;
}

void DivideAmong(const Pod& pod, std::span<PodMember> members) {
  DivideCpu(pod, members);
  DivideMemory(pod, members);
}

}  // namespace resmgr
