// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace resmgr {

// Amounts as people read them.

// Memory, to a tenth, in the largest unit of which there is at least one: "32 MiB", "1.5 GiB", "0".
std::string BytesText(int64_t bytes);
// "4 of 32 GiB", "32 MiB of 2 GiB"
std::string BytesOf(int64_t used, int64_t bytes);

// A number with its noun, whose plural only adds an s: "1 exclusive CPU", "2 exclusive CPUs".
inline std::string CountText(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// CountText with its verb: "1 call is", "2 calls are".
inline std::string CountIs(int64_t count, std::string_view noun) {
  return fmt::format("{} {}", CountText(count, noun), count == 1 ? "is" : "are");
}

// The first names of a long list: "a, b and 7 more", with at most `most` of them.
std::string FirstOf(const std::vector<std::string>& names, size_t most);

}  // namespace resmgr
