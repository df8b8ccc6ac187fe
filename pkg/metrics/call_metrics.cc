// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/call_metrics.h"

#include <chrono>
#include <cstdint>
#include <utility>

#include "pkg/metrics/collect.h"

namespace resmgr {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kOther = "other";

// From a small call's time within the daemon to the kubelet's timeout.
constexpr TimeHistogram::Bounds kBounds = {
    microseconds(10),  microseconds(25), microseconds(50), microseconds(100), microseconds(250),
    microseconds(500), milliseconds(1),  milliseconds(5),  milliseconds(25),  milliseconds(100),
    milliseconds(500), seconds(1),       seconds(5),       seconds(20),       seconds(120)};

}  // namespace

CallMetrics::Method::Method(std::string_view of_service, std::string_view called)
    : service(of_service), name(called), times{TimeHistogram(kBounds), TimeHistogram(kBounds)} {}

CallMetrics::CallMetrics(const std::vector<std::string>& known_methods) : other_(kOther, kOther) {
  for (const std::string& path : known_methods) {
    // The parts of "/package.Service/Method".
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || slash == 0) continue;
    const std::string_view all = path;
    methods_.try_emplace(path, all.substr(1, slash - 1), all.substr(slash + 1));
  }
}

CallMetrics::~CallMetrics() = default;

CallCounter& CallMetrics::Of(std::string_view path, bool intercepted) {
  const auto found = methods_.find(path);
  Method& method = found == methods_.end() ? other_ : found->second;
  return intercepted ? method.intercepted : method.passthrough;
}

void CallMetrics::AddCounts(const Method& method, const char* kind, const CallCounter& counter,
                            prometheus::MetricFamily* family) {
  for (size_t code = 0; code < CallCounter::kCodes; ++code) {
    const int64_t count = counter.counts()[code].value();
    if (count == 0) continue;
    prometheus::ClientMetric metric;
    metric.label = {{"code", std::string(CodeName(static_cast<StatusCode>(code)))},
                    {"kind", kind},
                    {"method", method.name},
                    {"service", method.service}};
    metric.counter.value = static_cast<double>(count);
    family->metric.push_back(std::move(metric));
  }
}

void CallMetrics::AddTimes(const Method& method, const char* part, const TimeHistogram& times,
                           prometheus::MetricFamily* family) {
  if (times.empty()) return;
  family->metric.push_back(
      CollectTimes(times, {{"method", method.name}, {"part", part}, {"service", method.service}}));
}

std::vector<prometheus::MetricFamily> CallMetrics::Collect() const {
  using prometheus::MetricType;
  prometheus::MetricFamily counts =
      MakeFamily("cri_resmgr_calls_total", "CRI calls that ended, with the code the client got",
                 MetricType::Counter);
  prometheus::MetricFamily times =
      MakeFamily("cri_resmgr_call_seconds", "How long CRI calls took here and at the runtime",
                 MetricType::Histogram);
  prometheus::MetricFamily in_flight =
      MakeFamily("cri_resmgr_calls_in_flight", "CRI calls that have not ended", MetricType::Gauge);
  const auto add = [&](const Method& method) {
    AddCounts(method, "passthrough", method.passthrough, &counts);
    AddCounts(method, "intercepted", method.intercepted, &counts);
    AddTimes(method, "ours", method.times.ours, &times);
    AddTimes(method, "runtime", method.times.runtime, &times);
  };
  for (const auto& [path, method] : methods_)
    add(method);
  add(other_);
  prometheus::ClientMetric now;
  now.gauge.value = static_cast<double>(in_flight_.value());
  in_flight.metric.push_back(std::move(now));
  std::vector<prometheus::MetricFamily> families;
  for (prometheus::MetricFamily* const family : {&counts, &times, &in_flight})
    families.push_back(std::move(*family));
  return families;
}

}  // namespace resmgr
