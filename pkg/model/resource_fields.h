// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "pkg/model/adjustment.h"
#include "pkg/model/resources.h"

namespace resmgr {

// The fields of Adjustment and LinuxResources, each described once: merging, comparing, reading and
// writing go through these rows (docs/how-to-add-a-field.md). Pure constants and templates.

// The names that `explain`, logs and metrics use, in the order of Field.
inline constexpr auto kFieldNames = std::to_array<std::string_view>({
    "cpuset_cpus",
    "cpuset_mems",
    "cpu_shares",
    "cpu_quota",
    "cpu_period",
    "memory_limit",
    "memory_swap_limit",
    "oom_score_adj",
    "hugepage_limits",
    "unified",
    "blockio_class",
    "rdt_class",
    "environment",
    "args",
    "mounts",
    "devices",
    "cdi_devices",
    "labels",
    "annotations",
    "cgroup_parent",
    "resource_limits",
    "hooks",
    "seccomp_profile",
    "scheduler",
    "io_priority",
    "memory_policy",
});
static_assert(kFieldNames.size() == static_cast<size_t>(Field::kMemoryPolicy) + 1);

// A number of LinuxContainerResources (CRI), with the places where values keep it.
struct NumberField {
  Field field;
  // The field's number and name in the CRI's message. They are the same in Koordinator's copy of
  // the message; the saved state has the same numbers.
  uint32_t cri_number;
  const char* cri_name;
  std::optional<int64_t> LinuxResources::*requested;  // nullptr: not a part of LinuxResources
  std::optional<int64_t> ResourceValues::*value;      // nullptr: not a part of ResourceValues
  // The number's place in an adjustment; nullptr: it is in Adjustment::values.
  std::optional<int64_t> WideAdjustment::*changed;

  // Whether the policy decides the field.
  constexpr bool decided() const { return changed == nullptr; }
};

inline constexpr std::array<NumberField, 6> kNumberFields{{
    {Field::kCpuPeriod, 1, "cpu_period", &LinuxResources::cpu_period, &ResourceValues::cpu_period,
     nullptr},
    {Field::kCpuQuota, 2, "cpu_quota", &LinuxResources::cpu_quota, &ResourceValues::cpu_quota,
     nullptr},
    {Field::kCpuShares, 3, "cpu_shares", &LinuxResources::cpu_shares, &ResourceValues::cpu_shares,
     nullptr},
    {Field::kMemoryLimit, 4, "memory_limit_in_bytes", &LinuxResources::memory_limit,
     &ResourceValues::memory_limit, &WideAdjustment::memory_limit},
    {Field::kOomScoreAdj, 5, "oom_score_adj", &LinuxResources::oom_score_adj, nullptr,
     &WideAdjustment::oom_score_adj},
    {Field::kMemorySwapLimit, 10, "memory_swap_limit_in_bytes", nullptr,
     &ResourceValues::memory_swap_limit, &WideAdjustment::memory_swap_limit},
}};

// nullptr: the field is not a number of LinuxContainerResources.
constexpr const NumberField* NumberFieldOf(Field field) {
  const auto* const found = std::ranges::find(kNumberFields, field, &NumberField::field);
  return found == kNumberFields.end() ? nullptr : found;
}

// The number in the adjustment.
inline std::optional<int64_t> NumberIn(const Adjustment& adjustment, const NumberField& row) {
  if (row.decided()) return adjustment.values.*row.value;
  return adjustment.wide() == nullptr ? std::nullopt : adjustment.wide()->*row.changed;
}

inline std::optional<int64_t>& NumberOf(Adjustment& adjustment, const NumberField& row) {
  return row.decided() ? adjustment.values.*row.value : adjustment.Wide().*row.changed;
}

// Calls visit(field, member) for each field of WideAdjustment, in the order of Field. `member` is a
// pointer to an optional value, to KeyedEdits, or to a list whose elements are added.
template <typename Visit>
constexpr void ForEachWideField(Visit visit) {
  visit(Field::kMemoryLimit, &WideAdjustment::memory_limit);
  visit(Field::kMemorySwapLimit, &WideAdjustment::memory_swap_limit);
  visit(Field::kOomScoreAdj, &WideAdjustment::oom_score_adj);
  visit(Field::kHugepageLimits, &WideAdjustment::hugepage_limits);
  visit(Field::kUnified, &WideAdjustment::unified);
  visit(Field::kBlockioClass, &WideAdjustment::blockio_class);
  visit(Field::kRdtClass, &WideAdjustment::rdt_class);
  visit(Field::kEnvironment, &WideAdjustment::environment);
  visit(Field::kArgs, &WideAdjustment::args);
  visit(Field::kMounts, &WideAdjustment::mounts);
  visit(Field::kDevices, &WideAdjustment::devices);
  visit(Field::kCdiDevices, &WideAdjustment::cdi_devices);
  visit(Field::kLabels, &WideAdjustment::labels);
  visit(Field::kAnnotations, &WideAdjustment::annotations);
  visit(Field::kCgroupParent, &WideAdjustment::cgroup_parent);
  visit(Field::kResourceLimits, &WideAdjustment::resource_limits);
  visit(Field::kHooks, &WideAdjustment::hooks);
  visit(Field::kSeccompProfile, &WideAdjustment::seccomp_profile);
  visit(Field::kScheduler, &WideAdjustment::scheduler);
  visit(Field::kIoPriority, &WideAdjustment::io_priority);
  visit(Field::kMemoryPolicy, &WideAdjustment::memory_policy);
}

}  // namespace resmgr
