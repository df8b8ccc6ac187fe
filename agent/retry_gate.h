// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "agent/backoff.h"
#include "agent/jitter.h"

namespace resmgr::agent {

// When the watches of one agent ask a server again that does not answer. One of them tries, with
// growing pauses; the others come after it, each at a time of its own, and wait on where it tried
// in vain. So an outage costs the server one request of each agent at a time, and after its end the
// rest is spread over about as long as the longest pause. Pure; thread-compatible.
class RetryGate {
 public:
  using Duration = std::chrono::milliseconds;
  using TimePoint = std::chrono::steady_clock::time_point;

  // Keeps 10,000 agents with three watches each below 200 requests a second, during an outage of
  // some minutes and after it (test/integration/agent/fleet_test.cc).
  static constexpr Backoff::Options kDefaults{.first = Duration(200), .limit = Duration(160'000)};

  RetryGate(Backoff::Options options, uint64_t seed) : backoff_(options, seed), jitter_(seed + 1) {}

  // A request got no answer, or one that says that the server is in trouble: how long its sender
  // waits before it asks Postponed.
  Duration Failed(TimePoint now);
  // Zero: the request may be sent. Else another watch has the next try: ask again after so long.
  Duration Postponed(TimePoint now);
  // The server serves: the next failure is the first again.
  void Succeeded() { backoff_.Reset(); }

 private:
  Backoff backoff_;
  Jitter jitter_;
  TimePoint next_try_{};
};

}  // namespace resmgr::agent
