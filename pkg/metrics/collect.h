// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include "pkg/metrics/call_times.h"

namespace resmgr {

using Counters = prometheus::Family<prometheus::Counter>;
using Gauges = prometheus::Family<prometheus::Gauge>;
using Histograms = prometheus::Family<prometheus::Histogram>;

// Adds a family to the registry, which owns it.
Counters& AddCounters(prometheus::Registry& registry, const char* name, const char* help);
Gauges& AddGauges(prometheus::Registry& registry, const char* name, const char* help);
Histograms& AddHistograms(prometheus::Registry& registry, const char* name, const char* help);

// Raises a counter to a sum that is counted elsewhere.
void RaiseTo(prometheus::Counter& counter, uint64_t sum);

// Helpers for scrapes of series that this module counts itself, without prometheus-cpp's counters.

// A family without series.
prometheus::MetricFamily MakeFamily(const char* name, const char* help,
                                    prometheus::MetricType type);

// The series of a histogram of times, in seconds. Concurrent observations may be missing.
prometheus::ClientMetric CollectTimes(const TimeHistogram& times,
                                      std::vector<prometheus::ClientMetric::Label> labels);

// A collectable with the families of the registry and, behind them, those that `more` makes at each
// scrape, on any thread.
std::shared_ptr<prometheus::Collectable> CollectWith(
    std::shared_ptr<prometheus::Registry> registry,
    std::function<std::vector<prometheus::MetricFamily>()> more);

}  // namespace resmgr
