// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/suggest.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"

namespace resmgr {

namespace {

// Longer names are not typing mistakes; the limit keeps the table small for any input.
constexpr size_t kLongestGuess = 64;

// The number of letters that are missing, added, wrong, or exchanged with the next one.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  std::vector<size_t> above(row.size());
  std::vector<size_t> above_that(row.size());
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(above_that, above);
    std::swap(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) row[j] = std::min(row[j], above_that[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view ClosestName(std::string_view given, const std::vector<std::string_view>& known) {
  if (given.empty() || given.size() > kLongestGuess) return "";
  const std::string wanted = ToLower(given);
  std::string_view closest;
  size_t closest_distance = std::max<size_t>(1, given.size() / 3) + 1;
  std::string_view begins;
  int begins_count = 0;
  for (const std::string_view name : known) {
    const std::string candidate = ToLower(name);
    const size_t distance = EditDistance(wanted, candidate);
    if (distance < closest_distance) {
      closest = name;
      closest_distance = distance;
    }
    if (wanted.size() >= 3 && candidate.compare(0, wanted.size(), wanted) == 0) {
      begins = name;
      ++begins_count;
    }
  }
  if (!closest.empty()) return closest;
  return begins_count == 1 ? begins : "";
}

std::string DidYouMean(std::string_view given, const std::vector<std::string_view>& known,
                       std::string_view prefix) {
  const std::string_view name = ClosestName(given, known);
  return name.empty() ? "" : fmt::format("; did you mean {}{}?", prefix, name);
}

}  // namespace resmgr
