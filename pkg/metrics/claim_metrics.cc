// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/claim_metrics.h"

#include <string>
#include <utility>

#include "pkg/metrics/collect.h"

namespace resmgr {

using std::chrono::milliseconds;
using std::chrono::seconds;

// From a claim that is held already to a call at its deadline, for which a kubelet waits.
constexpr TimeHistogram::Bounds ClaimMetrics::kBounds = {
    milliseconds(1),    milliseconds(2),   milliseconds(5),   milliseconds(10),  milliseconds(25),
    milliseconds(50),   milliseconds(100), milliseconds(250), milliseconds(500), seconds(1),
    milliseconds(2500), seconds(5),        seconds(10),       seconds(20),       seconds(40)};

ClaimMetrics::ClaimMetrics(prometheus::Registry& registry)
    : claims_(AddGauges(registry, "cri_resmgr_claims", "Claims that hold CPUs").Add({})),
      cpus_(AddGauges(registry, "cri_resmgr_claim_cpus", "CPUs that claims hold, by NUMA node")),
      calls_(AddCounters(registry, "cri_resmgr_claim_calls_total",
                         "Claims that the kubelet asked to prepare and to unprepare, by result")),
      prepared_(calls_.Add({{"call", "prepare"}, {"result", "ok"}})),
      not_prepared_(calls_.Add({{"call", "prepare"}, {"result", "failed"}})),
      unprepared_(calls_.Add({{"call", "unprepare"}, {"result", "ok"}})),
      not_unprepared_(calls_.Add({{"call", "unprepare"}, {"result", "failed"}})) {}

ClaimMetrics::~ClaimMetrics() = default;

void ClaimMetrics::Show(size_t claims, const std::map<int, int>& cpus) {
  claims_.Set(static_cast<double>(claims));
  for (const auto& [node, gauge] : nodes_)
    if (!cpus.contains(node)) gauge->Set(0);
  for (const auto& [node, count] : cpus) {
    prometheus::Gauge*& gauge = nodes_[node];
    if (gauge == nullptr) gauge = &cpus_.Add({{"node", std::to_string(node)}});
    gauge->Set(count);
  }
}

void ClaimMetrics::Count(const NodeMetrics::ClaimCall& call) {
  (call.prepare ? prepared_ : unprepared_).Increment(static_cast<double>(call.ok));
  (call.prepare ? not_prepared_ : not_unprepared_).Increment(static_cast<double>(call.failed));
  if (call.prepare) times_.Observe(call.took);
}

std::vector<prometheus::MetricFamily> ClaimMetrics::Collect() const {
  prometheus::MetricFamily family = MakeFamily("cri_resmgr_claim_prepare_seconds",
                                               "How long the kubelet waited for a pod's claims",
                                               prometheus::MetricType::Histogram);
  family.metric.push_back(CollectTimes(times_, {}));
  return {std::move(family)};
}

}  // namespace resmgr
