// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "pkg/metrics/time_histogram.h"

namespace resmgr {

// policy_decision_seconds{operation}. Only the event loop's thread observes; any may collect.
class DecisionMetrics final : public prometheus::Collectable {
 public:
  // Values of the label, in the order of NodeMetrics::Operation.
  static constexpr std::array kOperations = {"reconcile", "allocate", "update", "release",
                                             "rebalance"};

  ~DecisionMetrics() override;

  // `operation` is an index of kOperations.
  TimeHistogram& Of(size_t operation) { return times_[operation]; }

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  static const TimeHistogram::Bounds kBounds;

  std::array<TimeHistogram, kOperations.size()> times_ = {
      TimeHistogram(kBounds), TimeHistogram(kBounds), TimeHistogram(kBounds),
      TimeHistogram(kBounds), TimeHistogram(kBounds)};
};

}  // namespace resmgr
