// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

namespace resmgr::bench {

inline double Micros(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

inline double Median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

// The median over all rounds of a member or a function of each.
template <typename Round, typename Value>
double MedianOf(const std::vector<Round>& rounds, const Value& value) {
  std::vector<double> values;
  values.reserve(rounds.size());
  for (const Round& round : rounds)
    values.push_back(std::invoke(value, round));
  return Median(std::move(values));
}

}  // namespace resmgr::bench
