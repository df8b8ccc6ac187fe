// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "pkg/cri/call_clock.h"
#include "pkg/cri/method_table.h"
#include "pkg/metrics/metrics.h"

namespace resmgr {

// The relay's calls, counted by method where metrics are asked for. Loop's thread only.
class CallCounts {
 public:
  // nullptr: nothing is counted. Not owned; outlives the object.
  explicit CallCounts(Metrics* metrics);

  bool on() const { return metrics_ != nullptr; }
  // A call whose clock began. Only where on().
  void Begin() { metrics_->CountInFlight(1); }
  // A call ended, with this gRPC status. Its clock may not have begun. Does nothing unless on().
  void End(const Method& method, bool intercepted, int grpc_code, const CallClock& clock);

 private:
  Metrics* const metrics_;
  // By Method::place; passed on and intercepted. Null until the first call.
  std::vector<std::array<CallCounter*, 2>> counters_;
};

}  // namespace resmgr
