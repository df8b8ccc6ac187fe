// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

#include "pkg/base/status.h"
#include "pkg/metrics/time_histogram.h"
#include "pkg/sys/tally.h"

namespace resmgr {

// Durations of calls: within the daemon, and at the runtime.
struct CallTimes {
  TimeHistogram ours;
  TimeHistogram runtime;
};

// Counts the finished calls of one method and kind. Only the event loop's thread counts; any thread
// may read.
class CallCounter {
 public:
  static constexpr size_t kCodes = 17;  // gRPC codes 0 to 16

  // `times` belongs to the method, whatever the kind, and outlives the counter.
  explicit CallCounter(CallTimes& times) : times_(times) {}

  // An unknown gRPC status code counts as UNKNOWN.
  void Count(int grpc_code) {
    const auto code = static_cast<size_t>(grpc_code);
    counts_[code < kCodes ? code : static_cast<size_t>(StatusCode::kUnknown)].Add(1);
  }
  // call_seconds{service,method,part}: the durations within the daemon, and at the runtime.
  void Took(std::chrono::nanoseconds ours, std::chrono::nanoseconds runtime) {
    times_.ours.Observe(ours);
    times_.runtime.Observe(runtime);
  }

  const std::array<Tally, kCodes>& counts() const { return counts_; }

 private:
  CallTimes& times_;
  std::array<Tally, kCodes> counts_;
};

}  // namespace resmgr
