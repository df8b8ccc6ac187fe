// SPDX-License-Identifier: Apache-2.0
#include "test/bench/contrasts.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace resmgr::bench {

namespace {

// Mean of the logarithms, those of every block with an odd number of the pattern's bits negative.
// Different patterns are orthogonal (Walsh functions).
double Contrast(const std::vector<double>& ratios, size_t pattern) {
  double sum = 0;
  for (size_t block = 0; block < ratios.size(); ++block)
    sum += std::log(ratios[block]) * (std::popcount(block & pattern) % 2 == 0 ? 1 : -1);
  return sum / static_cast<double>(ratios.size());
}

// The factor of Student's distribution for 95 %, two-sided. The series (Abramowitz and Stegun,
// 26.7.5) is exact to 0.1 % from six degrees on.
double StudentFactor(double degrees) {
  constexpr double kNormal = 1.95996;
  const double square = kNormal * kNormal;
  const double first = (square + 1) / (4 * degrees);
  const double second = (5 * square * square + 16 * square + 3) / (96 * degrees * degrees);
  const double third = (3 * square * square * square + 19 * square * square + 17 * square - 15) /
                       (384 * degrees * degrees * degrees);
  return kNormal * (1 + first + second + third);
}

}  // namespace

bool SecondIsOn(size_t block) {
  return std::popcount(block) % 2 == 1;
}

Crossover Compare(const std::vector<double>& ratios) {
  const size_t roles = ratios.size() - 1;  // all bits
  Crossover result;
  double squares = 0;
  for (size_t pattern = 1; pattern < roles; ++pattern) {
    const double deviation = Contrast(ratios, pattern);
    squares += deviation * deviation;
    result.pretended.push_back(std::exp(deviation));
  }
  std::ranges::sort(result.pretended);
  const auto degrees = static_cast<double>(result.pretended.size());
  const double width = StudentFactor(degrees) * std::sqrt(squares / degrees);
  // The pattern is positive where the first daemon is on.
  const double effect = -Contrast(ratios, roles);
  result.ratio = std::exp(effect);
  result.low = std::exp(effect - width);
  result.high = std::exp(effect + width);
  result.processes = std::exp(Contrast(ratios, 0));
  return result;
}

}  // namespace resmgr::bench
