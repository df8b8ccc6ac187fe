// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace resmgr {

// How messages count things: "1 exclusive CPU", "2 exclusive CPUs". The noun is one that takes an
// s.
inline std::string CountText(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// The same as the subject of a sentence: "1 call is", "2 calls are".
inline std::string CountIs(int64_t count, std::string_view noun) {
  return fmt::format("{} {}", CountText(count, noun), count == 1 ? "is" : "are");
}

}  // namespace resmgr
