// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/need.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "pkg/kube/annotations.h"
#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/kube/quantity.h"
#include "pkg/model/requirements.h"
#include "pkg/policy/privileged_namespaces.h"

namespace resmgr {
namespace {

// Limits of a request: pods may state any number, and larger ones are cut to these, which no
// machine has and whose sums do not overflow.
constexpr int64_t kMostMilliCpus = int64_t{1'000'000'000};
constexpr Bytes kMostMemory{int64_t{1} << 50};

// Parses the page sizes in kubelets' requests, where "2MB" means 2Mi.
std::optional<Bytes> PageSize(std::string text) {
  if (text.ends_with('B')) text.back() = 'i';
  const StatusOr<Bytes> size = ParseBytes(text);
  return size.ok() ? std::optional(*size) : std::nullopt;
}

// Huge pages of the request. Kubelets name every page size of the node, also those that are not
// requested.
HugeMemories HugeMemoryOf(const LinuxResources& requested) {
  HugeMemories huge;
  for (const auto& [size, limit] : requested.hugepage_limits) {
    const std::optional<Bytes> page = limit > 0 ? PageSize(size) : std::nullopt;
    if (!page) continue;
    const auto amount =
        static_cast<int64_t>(std::min<uint64_t>(limit, static_cast<uint64_t>(kMostMemory.value)));
    huge.push_back({*page, Bytes{amount}});
  }
  return huge;
}

bool IsReserved(const Pod& pod, const Preferences& preferences, const TopologyAwareOptions& options,
                Need& need) {
  if (preferences.reserved.has_value()) {
    need.why = "its annotation prefers reserved CPUs";
    return *preferences.reserved;
  }
  need.why = fmt::format("namespace {} is reserved", pod.namespace_name);
  return IsReservedNamespace(options.reserved_namespaces, pod.namespace_name);
}

// Whether a Guaranteed container gets all of its whole CPUs exclusively; if not, it gets none.
bool WantsExclusive(MilliCpu request, const Preferences& preferences,
                    const TopologyAwareOptions& options, Need& need) {
  if (request.IsWhole()) {
    need.why = preferences.shared == true ? "its annotation prefers shared CPUs"
                                          : "Guaranteed with whole CPUs";
    return preferences.shared != true;
  }
  const bool shared = request.Whole() == 1 ? preferences.shared.value_or(options.prefer_shared)
                                           : preferences.shared.value_or(true);
  need.why = shared ? "Guaranteed with a fraction of a CPU, shared"
                    : "Guaranteed with whole CPUs and a fraction";
  return !shared;
}

void DecideGuaranteed(const Container& container, const Preferences& preferences,
                      const TopologyAwareOptions& options, Need& need) {
  const MilliCpu request = container.requirements.cpu_request;
  if (request.Whole() < 1) {
    need.why = "Guaranteed with less than one CPU";
    return;
  }
  if (const std::string_view why = WhyCpuIsOfPod(container.requirements); !why.empty()) {
    need.why = why;
    return;
  }
  if (!options.pin_cpu) {
    need.why = "CPUs are not pinned";
    return;
  }
  if (!WantsExclusive(request, preferences, options, need)) return;
  need.cpu_class = CpuClass::kExclusive;
  need.full = static_cast<int>(std::min<int64_t>(request.Whole(), CpuSet::kBits));
  need.fraction = request.Fraction();
  need.isolated_required = preferences.require_isolated;
  need.isolated_never = preferences.isolated == false && !need.isolated_required;
  need.isolated_explicit = preferences.isolated == true || need.isolated_required;
  need.isolated = need.isolated_explicit ||
                  (need.full == 1 && preferences.isolated.value_or(options.prefer_isolated));
  need.alignment = preferences.alignment.value_or(options.alignment);
  need.why += AnnotatedAlignment{.alignment = preferences.alignment}.Note();
  if (MayAskForMore(container)) need.why += kMayAskForMoreNote;
  // A container with only exclusive CPUs needs no quota, which could only throttle it.
  need.lift_quota = options.lift_quota && need.fraction == 0 && SharesTell(request);
}

void DecideBurst(const Container& container, const Preferences& preferences,
                 const TopologyAwareOptions& options, Need& need) {
  need.why = "Burstable";
  need.cpu_limit = std::min(container.requirements.cpu_limit.value, kMostMilliCpus);
  need.unlimited = need.cpu_limit == 0;
  need.unlimited_level = preferences.unlimited_burstable.value_or(options.unlimited_burstable);
}

}  // namespace

std::vector<std::string> TakeUnprivileged(const Pod& pod, const TopologyAwareOptions& options,
                                          Preferences& preferences) {
  std::vector<std::string> ignored;
  const bool asks =
      preferences.preserve_cpus || preferences.preserve_memory || preferences.reserved == true;
  if (!asks || options.privileged.Include(pod)) return ignored;
  const auto ignore = [&](std::string_view annotation) {
    ignored.push_back(PrivilegedNamespaces::WhyIgnored(annotation, pod, "topology-aware"));
  };
  if (std::exchange(preferences.preserve_cpus, false)) ignore("cpu.preserve");
  if (std::exchange(preferences.preserve_memory, false)) ignore("memory.preserve");
  if (preferences.reserved == true) {
    preferences.reserved.reset();
    // No note for pods of reserved namespaces, which get reserved CPUs anyway.
    if (!IsReservedNamespace(options.reserved_namespaces, pod.namespace_name))
      ignore("prefer-reserved-cpus");
  }
  return ignored;
}

Need DecideNeed(const Pod& pod, const Container& container, const Preferences& preferences,
                const TopologyAwareOptions& options, bool has_reserved) {
  Need need;
  const Requirements& requirements = container.requirements;
  need.fraction = std::clamp<int64_t>(requirements.cpu_request.value, 0, kMostMilliCpus);
  need.packing = options.packing;
  need.hide_hyperthreads = preferences.hide_hyperthreads;
  need.priority = preferences.priority.value_or(options.default_priority);
  need.pin_memory = options.pin_memory && !preferences.preserve_memory;
  need.cold_start = preferences.cold_start;
  need.memory_types = preferences.memory_types.value_or(kAllMemoryTypes);
  need.huge = HugeMemoryOf(container.requested);
  if (pod.qos != QosClass::kBestEffort) {
    need.memory = std::clamp(requirements.memory_request, Bytes{0}, kMostMemory);
    need.memory_estimated = requirements.memory_estimated;
    need.memory_limit = std::min(requirements.memory_limit, kMostMemory);
  }
  if (preferences.preserve_cpus) {
    need.cpu_class = CpuClass::kPreserved;
    need.fraction = 0;
    need.why = "its annotation keeps its CPUs as they are, exclusive CPUs of others among them";
  } else if (has_reserved && IsReserved(pod, preferences, options, need)) {
    need.cpu_class = CpuClass::kReserved;
  } else if (pod.qos == QosClass::kBestEffort) {
    need.fraction = 0;
    need.why = "BestEffort";
  } else if (pod.qos == QosClass::kBurstable) {
    DecideBurst(container, preferences, options, need);
  } else {
    DecideGuaranteed(container, preferences, options, need);
    if (need.cpu_class == CpuClass::kExclusive &&
        WantsSharedCpus(pod.annotations, container.name)) {
      // At least the smallest fraction, so that the container counts as a user of the shared CPUs.
      need.fraction = std::max<int64_t>(need.fraction, 1);
      need.lift_quota = false;
      need.why += kAndSharedNote;
    }
  }
  need.why += container.needs_note;
  return need;
}

Need UnboundNeed(const Need& need, std::string_view why) {
  return {.cpu_class = CpuClass::kPreserved,
          .fraction = need.fraction + int64_t{1000} * need.full,
          .memory = need.memory,
          .memory_estimated = need.memory_estimated,
          .memory_limit = need.memory_limit,
          .huge = need.huge,
          .pin_memory = false,
          .why = std::string(why)};
}

}  // namespace resmgr
