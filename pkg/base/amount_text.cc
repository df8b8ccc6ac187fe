// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/amount_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace resmgr {
namespace {

struct Amount {
  std::string number;
  std::string_view unit;
};

Amount AmountOf(int64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes);
  size_t unit = 0;
  // An amount that would be shown as 1024 is shown as 1 of the next unit.
  while (std::round(std::abs(amount) * 10) / 10 >= 1024 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  return {fmt::format("{}", std::round(amount * 10) / 10), kUnits.at(unit)};
}

}  // namespace

std::string BytesText(int64_t bytes) {
  if (bytes == 0) return "0";
  const Amount amount = AmountOf(bytes);
  return fmt::format("{} {}", amount.number, amount.unit);
}

std::string BytesOf(int64_t used, int64_t bytes) {
  const Amount all = AmountOf(bytes);
  const Amount part = AmountOf(used);
  if (used == 0 || part.unit == all.unit) {
    return fmt::format("{} of {} {}", part.number, all.number, all.unit);
  }
  return fmt::format("{} {} of {} {}", part.number, part.unit, all.number, all.unit);
}

std::string FirstOf(const std::vector<std::string>& names, size_t most) {
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most));
  std::string text = fmt::format("{}", fmt::join(names.begin(), end, ", "));
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

}  // namespace resmgr
