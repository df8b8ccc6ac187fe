// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "pkg/sys/traffic.h"

namespace resmgr {

// connection_bytes_total{peer,direction}, read from the sums of each peer at a scrape. Thread-safe.
class TrafficMetrics final : public prometheus::Collectable {
 public:
  // The sums belong to this object, since a scrape may outlive those who count.
  explicit TrafficMetrics(std::vector<std::string> peers);

  // The sum of a peer, by its index among the names.
  Traffic& of(size_t peer) { return *traffic_[peer]; }

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::vector<std::string> peers_;
  std::vector<std::unique_ptr<Traffic>> traffic_;
};

}  // namespace resmgr
