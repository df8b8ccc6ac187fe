// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "test/bench/scenario.h"
#include "test/bench/testbed.h"

namespace resmgr::bench {

// One burst of one scenario over one candidate.
struct Sample {
  double p50 = 0;  // microseconds
  double p99 = 0;
  double calls_per_second = 0;
  double cpu = 0;  // microseconds of the proxy per call
  // The same without the thread that samples what containers use.
  double cpu_of_calls = 0;
};

// The cost of cri-resmgr in units of the cost of the testbed's other daemon.
struct Comparison {
  double p50 = 0;
  double cpu = 0;
};

// Medians over all rounds. Ratios are medians of the ratios of each round, so that effects on a
// whole round cancel out.
struct Summary {
  Scenario scenario;
  std::vector<Sample> medians;  // of each candidate of the testbed
  // The time that cri-resmgr adds to the direct p50, in units of the time that the byte relay adds;
  // nullopt where that is too little to be a measure.
  std::optional<double> added;
  double cpu_ratio = 0;  // its CPU per call, in the byte relay's
  // The same for the second byte relay: how far to trust the numbers.
  std::optional<double> added_again;
  double cpu_again = 0;
  std::optional<Comparison> to_other;

  bool AddedOk() const {
    return !scenario.added_limit || !added || *added <= *scenario.added_limit;
  }
  bool CpuOk() const { return !scenario.cpu_limit || cpu_ratio <= *scenario.cpu_limit; }
};

// One burst, after calls of the same kind that are not counted. `number` is that of the next call.
// Unavailable: a call failed.
StatusOr<Sample> RunBurst(Candidate& candidate, const Scenario& scenario, int* number);

// Runs every scenario over every candidate, `rounds` times, the candidates one after the other in
// an order that favours none (order.h). Unavailable: a call failed.
StatusOr<std::vector<Summary>> Measure(Testbed& bed, const std::vector<Scenario>& scenarios,
                                       int rounds);

}  // namespace resmgr::bench
