// SPDX-License-Identifier: Apache-2.0
// The cost of classes for the creation of a container, in the brain and the pipeline of one
// process: without the module, with it and no classes, and with classes of four kinds. They are
// measured in turn within each round, by the processor time of the loop's thread. Prints ratios
// with their intervals of 95 % confidence; `--check` exits with 1 when a target is missed.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "pkg/log/log.h"
#include "test/bench/classes/classed_node.h"
#include "test/bench/order.h"

namespace resmgr::bench {
namespace {

constexpr int kContainers = 500;
constexpr int kRounds = 30;
// In each round, by mode: with classes each start waits for the worker.
constexpr std::array kCreations = {1000, 1000, 20};
constexpr std::array kModes = {ClassesMode::kWithout, ClassesMode::kOff, ClassesMode::kOn};
constexpr std::array kNames = {"without the module", "no classes", "all classes"};
// A call with the module and no classes may take so much longer.
constexpr double kMostOff = 1.01;

struct Ratio {
  double mean = 1;
  double low = 1;
  double high = 1;
};

// The mean of logarithms: a slow round counts as much as a fast one.
Ratio RatioOf(const std::vector<double>& ratios) {
  double sum = 0;
  for (const double ratio : ratios)
    sum += std::log(ratio);
  const auto count = static_cast<double>(ratios.size());
  const double mean = sum / count;
  double squares = 0;
  for (const double ratio : ratios)
    squares += (std::log(ratio) - mean) * (std::log(ratio) - mean);
  // Two standard errors.
  const double half = 2 * std::sqrt(squares / (count - 1) / count);
  return {std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

struct Sums {
  double nanoseconds = 0;
  int waited = 0;
  int held_starts = 0;
  double longest_start_ms = 0;
};

int Run(bool check) {
  ConfigureLogging({.level = LogLevel::kError});
  std::vector<std::unique_ptr<ClassedNode>> nodes;
  for (const ClassesMode mode : kModes)
    nodes.push_back(std::make_unique<ClassedNode>(mode, kContainers));
  std::array<Sums, kModes.size()> sums;
  std::array<std::vector<double>, kModes.size()> ratios;
  for (int round = -1; round < kRounds; ++round) {
    std::array<double, kModes.size()> times{};
    for (const size_t mode : OrderOf(static_cast<size_t>(round + 1), kModes.size())) {
      const Creations creations = nodes[mode]->Create(kCreations[mode]);
      times[mode] = static_cast<double>(creations.cpu.count());
      if (round < 0) continue;  // to warm up
      sums[mode].nanoseconds += times[mode] / kRounds;
      sums[mode].waited += creations.waited;
      sums[mode].held_starts += creations.held_starts;
      sums[mode].longest_start_ms =
          std::max(sums[mode].longest_start_ms,
                   std::chrono::duration<double, std::milli>(creations.longest_start).count());
    }
    for (size_t mode = 0; round >= 0 && mode < kModes.size(); ++mode)
      ratios[mode].push_back(times[mode] / times[0]);
  }
  std::printf("%d rounds, %d containers\n%-20s %10s %8s %17s %8s %12s\n", kRounds, kContainers, "",
              "CPU (us)", "ratio", "interval", "waited", "starts held");
  for (size_t mode = 0; mode < kModes.size(); ++mode) {
    const Ratio ratio = RatioOf(ratios[mode]);
    std::printf("%-20s %10.2f %8.4f  %7.4f-%7.4f %8d %7d, %.1f ms at most\n", kNames[mode],
                sums[mode].nanoseconds / 1000, ratio.mean, ratio.low, ratio.high, sums[mode].waited,
                sums[mode].held_starts, sums[mode].longest_start_ms);
  }
  const bool fast = RatioOf(ratios[1]).low <= kMostOff;
  const bool at_once = sums[2].waited == 0;
  if (!fast) std::printf("missed: with no classes a creation takes more than %.2f\n", kMostOff);
  if (!at_once) std::printf("missed: answers to creations wait\n");
  return check && !(fast && at_once) ? 1 : 0;
}

}  // namespace
}  // namespace resmgr::bench

int main(int argc, char** argv) {
  return resmgr::bench::Run(argc > 1 && std::string_view(argv[1]) == "--check");
}
