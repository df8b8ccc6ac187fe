// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "agent/jitter.h"

namespace resmgr::agent {

// Decides when the watches of one agent ask a server again that does not answer. One of them tries,
// after a random wait of up to two thirds of the outage's length; the others follow it, each at its
// own time, and wait on if it failed. So an outage costs the server one request per agent at a
// time, and an agent is back within one and a half times the outage's length. Pure;
// thread-compatible.
class RetryGate {
 public:
  using Duration = std::chrono::milliseconds;
  using TimePoint = std::chrono::steady_clock::time_point;

  // Limits of the wait for a try: at first, and for the longest outage. The defaults keep 10,000
  // agents with three watches each below 200 requests a second after an outage of five minutes and
  // more (test/integration/agent/fleet_test.cc).
  struct Options {
    Duration first{200};
    Duration limit{200'000};
  };

  RetryGate(Options options, uint64_t seed) : options_(options), jitter_(seed) {}

  // Notes a request without an answer, or with one that says that the server is in trouble. Returns
  // how long its sender waits before it asks Postponed.
  Duration Failed(TimePoint now);
  // Zero: the request may be sent. Else another watch has the next try; ask again after this time.
  Duration Postponed(TimePoint now);
  // The server answered: the next failure begins another outage.
  void Succeeded() { outage_began_.reset(); }

 private:
  const Options options_;
  Jitter jitter_;
  std::optional<TimePoint> outage_began_;
  Duration longest_wait_{};  // of the next try
  TimePoint next_try_{};
};

}  // namespace resmgr::agent
