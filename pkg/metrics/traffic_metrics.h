// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "pkg/sys/traffic.h"

namespace resmgr {

// connection_bytes_total{peer,direction}, read from the sums of each peer when a scrape asks.
// Thread-safe.
class TrafficMetrics final : public prometheus::Collectable {
 public:
  // A scrape may last longer than what is counted elsewhere: the sums are this object's.
  explicit TrafficMetrics(std::vector<std::string> peers);

  // The sum of a peer, by its place among the names.
  Traffic& of(size_t peer) { return *traffic_[peer]; }

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::vector<std::string> peers_;
  std::vector<std::unique_ptr<Traffic>> traffic_;
};

}  // namespace resmgr
