// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

#include "pkg/sys/tally.h"

namespace resmgr {

// A histogram of durations. One thread observes, any may read; prometheus::Histogram takes a lock
// and five locked instructions for each observation, which is too expensive for every call.
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
  // Each bucket has the durations up to its bound, and above the one before it; the last one has
  // all longer ones.
  const std::array<Tally, kBounds + 1>& buckets() const { return buckets_; }
  std::chrono::nanoseconds sum() const { return std::chrono::nanoseconds(nanoseconds_.value()); }

 private:
  const Bounds& bounds_;
  std::array<Tally, kBounds + 1> buckets_;
  Tally nanoseconds_;
};

}  // namespace resmgr
