// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "pkg/metrics/call_counter.h"
#include "pkg/sys/tally.h"

namespace resmgr {

// calls_total, call_seconds and calls_in_flight. Only the event loop's thread counts; any thread
// may collect.
class CallMetrics final : public prometheus::Collectable {
 public:
  // Paths of methods ("/runtime.v1.RuntimeService/Version"). All others count as one, "other".
  explicit CallMetrics(const std::vector<std::string>& known_methods);
  ~CallMetrics() override;

  // Returns the same object for the same arguments.
  CallCounter& Of(std::string_view path, bool intercepted);
  Tally& in_flight() { return in_flight_; }

  // A method's series appear with its first call, so that a scrape has only those in use.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  struct Method {
    Method(std::string_view of_service, std::string_view called);

    const std::string service;
    const std::string name;
    CallTimes times;  // of passthrough and intercepted calls
    CallCounter passthrough{times};
    CallCounter intercepted{times};
  };

  static void AddCounts(const Method& method, const char* kind, const CallCounter& counter,
                        prometheus::MetricFamily* family);
  static void AddTimes(const Method& method, const char* part, const TimeHistogram& times,
                       prometheus::MetricFamily* family);

  // Constant after construction, so no lock is needed.
  std::map<std::string, Method, std::less<>> methods_;
  Method other_;
  Tally in_flight_;
};

}  // namespace resmgr
