// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/duration.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;

struct Unit {
  std::string_view name;
  milliseconds length;
};

// "ms" precedes "m", its prefix.
constexpr std::array<Unit, 4> kUnits = {{{"h", std::chrono::hours(1)},
                                         {"ms", milliseconds(1)},
                                         {"m", std::chrono::minutes(1)},
                                         {"s", std::chrono::seconds(1)}}};

}  // namespace

std::optional<milliseconds> ParseDuration(std::string_view text, milliseconds longest) {
  if (text.empty()) return std::nullopt;
  milliseconds left = longest;
  while (!text.empty()) {
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::optional<int64_t> count = ParseInt(text.substr(0, digits));
    text.remove_prefix(digits);
    const auto unit = std::find_if(kUnits.begin(), kUnits.end(), [text](const Unit& each) {
      return text.starts_with(each.name);
    });
    if (!count || unit == kUnits.end() || *count > left / unit->length) return std::nullopt;
    left -= *count * unit->length;
    text.remove_prefix(unit->name.size());
  }
  return longest - left;
}

std::string DurationText(milliseconds duration) {
  constexpr std::array<std::string_view, 4> kLargestFirst = {"h", "m", "s", "ms"};
  for (const std::string_view name : kLargestFirst) {
    const milliseconds unit = std::find_if(kUnits.begin(), kUnits.end(), [name](const Unit& each) {
                                return each.name == name;
                              })->length;
    if (duration % unit == milliseconds(0) && duration >= unit) {
      return fmt::format("{}{}", duration / unit, name);
    }
  }
  return "0s";
}

}  // namespace resmgr
