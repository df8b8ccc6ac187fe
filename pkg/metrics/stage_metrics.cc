// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/stage_metrics.h"

#include "pkg/metrics/collect.h"

namespace resmgr {
namespace {

constexpr std::string_view kOtherPlugins = "other";

prometheus::Histogram::BucketBoundaries Buckets() {
  // Bounds in seconds, from the best time of a plugin on the same machine to beyond its timeout.
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
          0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
}

}  // namespace

class StageMetrics::Counter final : public PluginCounter {
 public:
  Counter(prometheus::Histogram& calls, prometheus::Counter& failures)
      : calls_(calls), failures_(failures) {}

  void Answered(std::chrono::nanoseconds took) override {
    calls_.Observe(std::chrono::duration<double>(took).count());
  }
  void Failed() override { failures_.Increment(); }

 private:
  prometheus::Histogram& calls_;
  prometheus::Counter& failures_;
};

StageMetrics::StageMetrics(prometheus::Registry& registry)
    : dropped_placements_(
          AddCounters(registry, "cri_resmgr_dropped_placements_total",
                      "CPUs or memory nodes that a stage wanted for a container, and "
                      "that are the policy's to decide")),
      dropped_keys_(AddCounters(registry, "cri_resmgr_dropped_keys_total",
                                "Changes that contained labels or annotations which are the "
                                "kubelet's own, and which were left out")),
      ignored_failures_(AddCounters(registry, "cri_resmgr_ignored_failures_total",
                                    "Calls that went on without a stage that failed")),
      refusals_(AddCounters(registry, "cri_resmgr_stage_refusals_total",
                            "Calls that a stage refused, or that were refused since it failed")),
      wait_seconds_(AddHistograms(registry, "cri_resmgr_stage_wait_seconds",
                                  "How long calls waited for a stage that did not answer at once")),
      call_seconds_(AddHistograms(registry, "cri_resmgr_plugin_call_seconds",
                                  "How long plugins took to answer")),
      failures_(AddCounters(registry, "cri_resmgr_plugin_failures_total",
                            "Calls that a plugin refused, or did not answer in time")),
      ready_(AddGauges(registry, "cri_resmgr_plugins_ready",
                       "Plugins that are connected and take part")) {}

StageMetrics::~StageMetrics() = default;

void StageMetrics::CountDroppedPlacement(std::string_view stage) {
  dropped_placements_.Add({{"stage", std::string(stage)}}).Increment();
}

void StageMetrics::CountDroppedKeys(std::string_view stage) {
  dropped_keys_.Add({{"stage", std::string(stage)}}).Increment();
}

void StageMetrics::CountRefusal(std::string_view stage) {
  refusals_.Add({{"stage", std::string(stage)}}).Increment();
}

void StageMetrics::CountIgnoredFailure(std::string_view stage) {
  ignored_failures_.Add({{"stage", std::string(stage)}}).Increment();
}

void StageMetrics::Waited(std::string_view stage, std::chrono::nanoseconds time) {
  const std::lock_guard lock(mutex_);
  auto known = waits_.find(stage);
  if (known == waits_.end()) {
    prometheus::Histogram& made = wait_seconds_.Add({{"stage", std::string(stage)}}, Buckets());
    known = waits_.emplace(stage, &made).first;
  }
  known->second->Observe(std::chrono::duration<double>(time).count());
}

PluginCounter& StageMetrics::Plugin(std::string_view kind, std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto known = plugins_.find(std::pair(std::string(kind), std::string(name)));
  if (known != plugins_.end()) return *known->second;
  return Make(kind, plugins_.size() < kMostPlugins ? name : kOtherPlugins);
}

PluginCounter& StageMetrics::Make(std::string_view kind, std::string_view name) {
  std::unique_ptr<Counter>& counter = plugins_[std::pair(std::string(kind), std::string(name))];
  if (counter == nullptr) {
    const prometheus::Labels labels = {{"kind", std::string(kind)}, {"plugin", std::string(name)}};
    counter =
        std::make_unique<Counter>(call_seconds_.Add(labels, Buckets()), failures_.Add(labels));
  }
  return *counter;
}

void StageMetrics::SetReadyPlugins(std::string_view kind, size_t count) {
  ready_.Add({{"kind", std::string(kind)}}).Set(static_cast<double>(count));
}

}  // namespace resmgr
