// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/traffic_metrics.h"

#include <utility>

#include "pkg/metrics/collect.h"

namespace resmgr {

TrafficMetrics::TrafficMetrics(std::vector<std::string> peers) : peers_(std::move(peers)) {
  for (size_t i = 0; i < peers_.size(); ++i)
    traffic_.push_back(std::make_unique<Traffic>());
}

std::vector<prometheus::MetricFamily> TrafficMetrics::Collect() const {
  prometheus::MetricFamily family =
      MakeFamily("cri_resmgr_connection_bytes_total",
                 "Bytes that connections have received and sent", prometheus::MetricType::Counter);
  for (size_t i = 0; i < peers_.size(); ++i) {
    const auto add = [&](const char* direction, uint64_t bytes) {
      prometheus::ClientMetric metric;
      metric.label = {{"direction", direction}, {"peer", peers_[i]}};
      metric.counter.value = static_cast<double>(bytes);
      family.metric.push_back(std::move(metric));
    };
    add("received", traffic_[i]->received());
    add("sent", traffic_[i]->sent());
  }
  return {std::move(family)};
}

}  // namespace resmgr
