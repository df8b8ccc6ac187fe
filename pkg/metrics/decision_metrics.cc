// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/decision_metrics.h"

#include <chrono>
#include <utility>

#include "pkg/metrics/collect.h"

namespace resmgr {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// From a decision about one shared container to a resync of thousands.
constexpr TimeHistogram::Bounds DecisionMetrics::kBounds = {
    microseconds(1),  nanoseconds(2500), microseconds(5),   microseconds(10),  microseconds(25),
    microseconds(50), microseconds(100), microseconds(250), microseconds(500), milliseconds(1),
    milliseconds(5),  milliseconds(25),  milliseconds(100), seconds(1),        seconds(10)};

DecisionMetrics::~DecisionMetrics() = default;

std::vector<prometheus::MetricFamily> DecisionMetrics::Collect() const {
  prometheus::MetricFamily family =
      MakeFamily("cri_resmgr_policy_decision_seconds", "What the policy took for its decisions",
                 prometheus::MetricType::Histogram);
  for (size_t i = 0; i < kOperations.size(); ++i)
    family.metric.push_back(CollectTimes(times_[i], {{"operation", kOperations[i]}}));
  return {std::move(family)};
}

}  // namespace resmgr
