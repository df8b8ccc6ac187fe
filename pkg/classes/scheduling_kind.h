// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// The burst that a class of scheduling gives.

// The CPU time above its quota that a container may save up while it uses less, in microseconds.
// `percent` of the quota, and never more than the quota, which the kernel refuses. nullopt: there
// is no quota (0 or less), and nothing to save up. Pure.
std::optional<int64_t> BurstOf(int64_t quota, int64_t percent);

// The quota in cpu.max ("50000 100000", "max 100000") or cpu.cfs_quota_us ("50000", "-1"); -1:
// none. InvalidArgument: it is neither.
StatusOr<int64_t> ParseQuota(std::string_view text);

}  // namespace resmgr
