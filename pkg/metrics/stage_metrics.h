// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "pkg/metrics/plugin_stats.h"

namespace resmgr {

// The part of Metrics about the pipeline's stages and their plugins. Plugins choose their names, so
// after kMostPlugins of them all others are counted as one, "other". Thread-safe.
class StageMetrics {
 public:
  static constexpr size_t kMostPlugins = 256;

  explicit StageMetrics(prometheus::Registry& registry);
  ~StageMetrics();

  void CountDroppedPlacement(std::string_view stage);
  void CountDroppedKeys(std::string_view stage);
  void CountIgnoredFailure(std::string_view stage);
  void CountRefusal(std::string_view stage);
  void Waited(std::string_view stage, std::chrono::nanoseconds time);
  PluginCounter& Plugin(std::string_view kind, std::string_view name);
  void SetReadyPlugins(std::string_view kind, size_t count);

 private:
  class Counter;

  PluginCounter& Make(std::string_view kind, std::string_view name);

  prometheus::Family<prometheus::Counter>& dropped_placements_;
  prometheus::Family<prometheus::Counter>& dropped_keys_;
  prometheus::Family<prometheus::Counter>& ignored_failures_;
  prometheus::Family<prometheus::Counter>& refusals_;
  prometheus::Family<prometheus::Histogram>& wait_seconds_;
  prometheus::Family<prometheus::Histogram>& call_seconds_;
  prometheus::Family<prometheus::Counter>& failures_;
  prometheus::Family<prometheus::Gauge>& ready_;
  std::mutex mutex_;
  std::map<std::string, prometheus::Histogram*, std::less<>> waits_;  // by stage
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Counter>> plugins_;
};

}  // namespace resmgr
