// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "test/bench/contrasts.h"
#include "test/bench/samples.h"
#include "test/bench/scenario.h"
#include "test/bench/testbed.h"

namespace resmgr::bench {

// The effect of samples on the calls of one kind.
struct SamplingCost {
  // The highest ratio that counts as nothing.
  static constexpr double kLimit = 1.01;

  std::string name;
  int concurrency = 0;    // 0: of all kinds together
  double p50 = 0;         // microseconds, without samples
  double cpu = 0;         // microseconds of the daemon per call, without samples
  Crossover p50_with;     // in p50
  Crossover cpu_with;     // as `cpu`, without the time of the samples themselves
  double cpu_of_all = 1;  // the same with that time: higher with fewer calls

  // Whether the targets are met, with the confidence of the intervals.
  bool Met() const { return p50_with.high <= kLimit && cpu_with.high <= kLimit; }
};

struct SamplingCosts {
  // Percent of one CPU.
  static constexpr double kOwnLimit = 0.2;

  std::vector<SamplingCost> calls;  // the last one is that of all kinds together
  double own = 0;                   // time of the samples themselves, in percent of one CPU

  bool Met() const { return calls.back().Met() && own <= kOwnLimit; }
};

// Measures calls over two equal daemons, of which one samples. They exchange their roles from block
// to block, `blocks` times in all (contrasts.h); each block is as long as two samples and a second.
// Within a block the daemons are measured in turn. Unavailable: a call failed.
StatusOr<SamplingCosts> MeasureSampling(Testbed& bed, const SampledContainers& sampled,
                                        const std::vector<Scenario>& scenarios, size_t blocks);

// For people.
std::string SamplingTable(const SamplingCosts& costs);

}  // namespace resmgr::bench
