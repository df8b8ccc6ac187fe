// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include "pkg/metrics/node_metrics.h"
#include "pkg/metrics/time_histogram.h"

namespace resmgr {

// claims, claim_cpus{node}, claim_calls_total{call,result}, and claim_prepare_seconds, which is
// collected here; the others by the registry. Only the event loop's thread changes them; any may
// collect.
class ClaimMetrics final : public prometheus::Collectable {
 public:
  explicit ClaimMetrics(prometheus::Registry& registry);
  ~ClaimMetrics() override;

  // By NUMA node; nodes that are not named any more keep their series, with 0.
  void Show(size_t claims, const std::map<int, int>& cpus);
  void Count(const NodeMetrics::ClaimCall& call);

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  static const TimeHistogram::Bounds kBounds;

  prometheus::Gauge& claims_;
  prometheus::Family<prometheus::Gauge>& cpus_;
  std::map<int, prometheus::Gauge*> nodes_;
  prometheus::Family<prometheus::Counter>& calls_;
  prometheus::Counter& prepared_;
  prometheus::Counter& not_prepared_;
  prometheus::Counter& unprepared_;
  prometheus::Counter& not_unprepared_;
  TimeHistogram times_{kBounds};
};

}  // namespace resmgr
