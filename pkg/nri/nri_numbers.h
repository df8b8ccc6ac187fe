// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "pkg/api/nri.pb.h"
#include "pkg/model/resource_fields.h"

namespace resmgr::nri {

// A number of pkg/model/resource_fields.h in NRI's LinuxResources, with the same unit. The OOM
// score is not one of them: it is a field of the container.
struct NriNumber {
  using Resources = ::nri::pkg::api::v1alpha1::LinuxResources;

  Field field;
  ::nri::pkg::api::v1alpha1::Field nri_field;
  std::string_view text;
  bool is_unsigned;  // in NRI's message
  // nullopt: not set. An unsigned number beyond int64_t comes out negative.
  std::optional<int64_t> (*get)(const Resources& resources);
  void (*set)(Resources& resources, int64_t number);

  constexpr const NumberField& row() const { return *NumberFieldOf(field); }
};

template <typename Number>
std::optional<int64_t> SetNumber(bool is_set, const Number& number) {
  return is_set ? std::optional(static_cast<int64_t>(number.value())) : std::nullopt;
}

inline constexpr std::array<NriNumber, 5> kNriNumbers{{
    {Field::kCpuShares, ::nri::pkg::api::v1alpha1::FIELD_CPUSHARES, "CPU shares", true,
     [](const NriNumber::Resources& resources) {
       return SetNumber(resources.cpu().has_shares(), resources.cpu().shares());
     },
     [](NriNumber::Resources& resources, int64_t number) {
       resources.mutable_cpu()->mutable_shares()->set_value(static_cast<uint64_t>(number));
     }},
    {Field::kCpuQuota, ::nri::pkg::api::v1alpha1::FIELD_CPUQUOTA, "CPU quota", false,
     [](const NriNumber::Resources& resources) {
       return SetNumber(resources.cpu().has_quota(), resources.cpu().quota());
     },
     [](NriNumber::Resources& resources, int64_t number) {
       resources.mutable_cpu()->mutable_quota()->set_value(number);
     }},
    {Field::kCpuPeriod, ::nri::pkg::api::v1alpha1::FIELD_CPUPERIOD, "CPU period", true,
     [](const NriNumber::Resources& resources) {
       return SetNumber(resources.cpu().has_period(), resources.cpu().period());
     },
     [](NriNumber::Resources& resources, int64_t number) {
       resources.mutable_cpu()->mutable_period()->set_value(static_cast<uint64_t>(number));
     }},
    {Field::kMemoryLimit, ::nri::pkg::api::v1alpha1::FIELD_MEM_LIMIT, "memory limit", false,
     [](const NriNumber::Resources& resources) {
       return SetNumber(resources.memory().has_limit(), resources.memory().limit());
     },
     [](NriNumber::Resources& resources, int64_t number) {
       resources.mutable_memory()->mutable_limit()->set_value(number);
     }},
    {Field::kMemorySwapLimit, ::nri::pkg::api::v1alpha1::FIELD_MEM_SWAP_LIMIT, "swap limit", false,
     [](const NriNumber::Resources& resources) {
       return SetNumber(resources.memory().has_swap(), resources.memory().swap());
     },
     [](NriNumber::Resources& resources, int64_t number) {
       resources.mutable_memory()->mutable_swap()->set_value(number);
     }},
}};

}  // namespace resmgr::nri
