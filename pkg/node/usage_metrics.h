// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "pkg/topology/machine.h"
#include "pkg/usage/usage_figures.h"

namespace prometheus {
class Collectable;
}  // namespace prometheus

namespace resmgr {

// Metrics of what containers, pools and memory nodes use, with the prefix cri_resmgr_: gauges as of
// the last sample, and counters of the kernel's events. Thread-safe.
class UsageMetrics {
 public:
  // Limit of containers with series of their own; further containers are only counted.
  static constexpr size_t kMostContainerSeries = 5000;

  UsageMetrics();
  ~UsageMetrics();
  UsageMetrics(const UsageMetrics&) = delete;
  UsageMetrics& operator=(const UsageMetrics&) = delete;

  // The series of containers, ready for scrapes: thousands of labels. They may be made, and
  // destroyed, on any thread.
  class Series;
  using SeriesPtr = std::shared_ptr<const Series>;
  static SeriesPtr MakeSeries(std::span<const ContainerFigures> containers);

  // Shows the figures of a sample, with these series of its containers. Returns the series shown
  // before, for another thread to destroy.
  SeriesPtr Show(const UsageFigures& figures, const Machine& machine, SeriesPtr series);
  // Removes the figures of use, which are unknown from now on; totals stay.
  void Clear();

  // The collectable for a scrape.
  std::shared_ptr<prometheus::Collectable> collectable() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace resmgr
