// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/collect.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

namespace resmgr {
namespace {

struct RegistryAndMore final : prometheus::Collectable {
  RegistryAndMore(std::shared_ptr<prometheus::Registry> counted,
                  std::function<std::vector<prometheus::MetricFamily>()> made)
      : registry(std::move(counted)), more(std::move(made)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> all = registry->Collect();
    std::ranges::move(more(), std::back_inserter(all));
    return all;
  }

  const std::shared_ptr<prometheus::Registry> registry;
  const std::function<std::vector<prometheus::MetricFamily>()> more;
};

}  // namespace

Counters& AddCounters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

Gauges& AddGauges(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

Histograms& AddHistograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

void RaiseTo(prometheus::Counter& counter, uint64_t sum) {
  counter.Increment(static_cast<double>(sum) - counter.Value());
}

prometheus::MetricFamily MakeFamily(const char* name, const char* help,
                                    prometheus::MetricType type) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  return family;
}

prometheus::ClientMetric CollectTimes(const TimeHistogram& times,
                                      std::vector<prometheus::ClientMetric::Label> labels) {
  const auto in_seconds = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  };
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  metric.histogram.sample_sum = in_seconds(times.sum());
  uint64_t count = 0;
  for (size_t i = 0; i <= TimeHistogram::kBounds; ++i) {
    count += static_cast<uint64_t>(times.buckets()[i].value());
    const double bound = i < TimeHistogram::kBounds ? in_seconds(times.bounds()[i])
                                                    : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({.cumulative_count = count, .upper_bound = bound});
  }
  metric.histogram.sample_count = count;
  return metric;
}

std::shared_ptr<prometheus::Collectable> CollectWith(
    std::shared_ptr<prometheus::Registry> registry,
    std::function<std::vector<prometheus::MetricFamily>()> more) {
  return std::make_shared<RegistryAndMore>(std::move(registry), std::move(more));
}

}  // namespace resmgr
