// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// The burst that a class of scheduling gives.

// The CPU time in microseconds that a container may save up while it uses less than its quota, and
// use later. This is `percent` of the quota, but at most the whole quota: the kernel refuses more.
// nullopt: there is no quota (0 or less), so nothing can be saved up. Pure.
std::optional<int64_t> BurstOf(int64_t quota, int64_t percent);

// The quota in cpu.max ("50000 100000", "max 100000") or cpu.cfs_quota_us ("50000", "-1"); -1:
// none. InvalidArgument: it is neither.
StatusOr<int64_t> ParseQuota(std::string_view text);

}  // namespace resmgr
