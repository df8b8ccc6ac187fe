// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "pkg/cri/call_clock.h"
#include "pkg/cri/method_table.h"
#include "pkg/metrics/metrics.h"

namespace resmgr {

// Counts the relay's calls by method, if metrics are requested. Loop's thread only.
class CallCounts {
 public:
  // nullptr: no counting. Not owned; outlives this object.
  explicit CallCounts(Metrics* metrics);

  bool on() const { return metrics_ != nullptr; }
  // Counts a call whose clock began. Requires on().
  void Begin() { metrics_->CountInFlight(1); }
  // Counts a call that ended with this gRPC status. Its clock may not have begun. No effect unless
  // on().
  void End(const Method& method, bool intercepted, int grpc_code, const CallClock& clock);

 private:
  Metrics* const metrics_;
  // By Method::place; passed and intercepted calls. Null until the first call.
  std::vector<std::array<CallCounter*, 2>> counters_;
};

}  // namespace resmgr
