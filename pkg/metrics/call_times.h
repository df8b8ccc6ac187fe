// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

#include "pkg/base/status.h"
#include "pkg/sys/traffic.h"

namespace resmgr {

// A histogram of durations. One thread observes, any may read. prometheus::Histogram would take a
// lock and five locked instructions for each observation, too much for every call.
class TimeHistogram {
 public:
  static constexpr size_t kBounds = 15;
  // Upper bounds of the buckets, ascending; a duration equal to a bound is in its bucket.
  using Bounds = std::array<std::chrono::nanoseconds, kBounds>;

  // The bounds outlive the histogram.
  explicit TimeHistogram(const Bounds& bounds) : bounds_(bounds) {}

  void Observe(std::chrono::nanoseconds time);
  bool empty() const;

  const Bounds& bounds() const { return bounds_; }
  // Each bucket counts the durations above the previous bound and up to its own; the last one
  // counts all longer ones.
  const std::array<Tally, kBounds + 1>& buckets() const { return buckets_; }
  std::chrono::nanoseconds sum() const { return std::chrono::nanoseconds(nanoseconds_.value()); }

 private:
  const Bounds& bounds_;
  std::array<Tally, kBounds + 1> buckets_;
  Tally nanoseconds_;
};

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

  // `times` is shared by all kinds of calls of the method, and outlives the counter.
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
