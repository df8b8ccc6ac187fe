// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace resmgr {

// " (3 more were not logged)" for the end of a message, with the number that RateLimit::Pass
// returned; "" for 0.
inline std::string NotLogged(uint64_t suppressed) {
  return suppressed == 0 ? "" : fmt::format(" ({} more were not logged)", suppressed);
}

}  // namespace resmgr
