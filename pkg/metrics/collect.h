// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "pkg/metrics/time_histogram.h"

namespace resmgr {

// Helpers for scrapes of series that this module counts itself, without prometheus-cpp's counters.

// A family without series.
prometheus::MetricFamily MakeFamily(const char* name, const char* help,
                                    prometheus::MetricType type);

// A series of times in seconds. Concurrent observations may be included or not.
prometheus::ClientMetric CollectTimes(const TimeHistogram& times,
                                      std::vector<prometheus::ClientMetric::Label> labels);

// Combines several collectables into one, in this order.
std::shared_ptr<prometheus::Collectable> CollectTogether(
    std::vector<std::shared_ptr<prometheus::Collectable>> parts);

}  // namespace resmgr
