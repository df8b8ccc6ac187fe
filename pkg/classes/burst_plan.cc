// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/burst_plan.h"

#include <algorithm>

#include "pkg/base/parse.h"

namespace resmgr {

std::optional<int64_t> BurstOf(int64_t quota, int64_t percent) {
  constexpr int64_t kWhole = 100;
  if (quota <= 0) return std::nullopt;
  if (percent >= kWhole) return quota;
  // In two parts, so that no product overflows.
  return quota / kWhole * percent + quota % kWhole * percent / kWhole;
}

StatusOr<int64_t> ParseQuota(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  const std::string_view quota = trimmed.substr(0, trimmed.find(' '));
  if (quota == "max") return -1;
  const std::optional<int64_t> number = ParseInt(quota);
  if (number && *number >= -1) return *number;
  return InvalidArgument("\"{}\" is no CPU quota", Printable(trimmed, 64));
}

}  // namespace resmgr
