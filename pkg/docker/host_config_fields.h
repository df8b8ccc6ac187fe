// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/model/adjustment.h"

namespace resmgr::docker {

// The fields of HostConfig (Docker API 1.41), which clients before version 1.18 of the API put
// beside it. Pure functions.

struct HostConfigNumber {
  Field field;
  std::string_view name;
};

// The names in HostConfig of the numbers in pkg/model/resource_fields.h, which have the same units.
inline constexpr std::array<HostConfigNumber, 6> kHostConfigNumbers{{
    {Field::kCpuShares, "CpuShares"},
    {Field::kCpuPeriod, "CpuPeriod"},
    {Field::kCpuQuota, "CpuQuota"},
    {Field::kMemoryLimit, "Memory"},
    {Field::kMemorySwapLimit, "MemorySwap"},
    {Field::kOomScoreAdj, "OomScoreAdj"},
}};

// Whether Go reads a member with this quoted name into one of these fields.
bool IsHostConfigField(std::string_view quoted);

// The members of a creation's body with such names, as `"name":value`, in their order. The body has
// passed CheckJson.
std::vector<std::string> MembersBesideHostConfig(std::string_view object);

}  // namespace resmgr::docker
