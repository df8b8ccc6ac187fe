// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace resmgr {

// The name of a container until its runtime reports the one that it made up.
inline constexpr std::string_view kPlaceholderName = "unnamed-";

inline std::string PlaceholderName(uint64_t number) {
  return std::string(kPlaceholderName) + std::to_string(number);
}

inline bool IsPlaceholderName(std::string_view name) {
  return name.starts_with(kPlaceholderName);
}

}  // namespace resmgr
