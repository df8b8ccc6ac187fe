// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "agent/jitter.h"

namespace resmgr::agent {

// When the watches of one agent ask a server again that does not answer. One of them tries, after
// any time up to two thirds as long as the outage has lasted; the others come after it, each at a
// time of its own, and wait on where it tried in vain. So an outage costs the server one request of
// each agent at a time, and an agent is back within one and a half times as long as the outage
// lasted. Pure;
// thread-compatible.
class RetryGate {
 public:
  using Duration = std::chrono::milliseconds;
  using TimePoint = std::chrono::steady_clock::time_point;

  // How long a try may wait at most: at the beginning, and however long it takes. These keep 10,000
  // agents with three watches each below 200 requests a second after an outage of five minutes and
  // more (test/integration/agent/fleet_test.cc).
  struct Options {
    Duration first{200};
    Duration limit{200'000};
  };

  RetryGate(Options options, uint64_t seed) : options_(options), jitter_(seed) {}

  // A request got no answer, or one that says that the server is in trouble: how long its sender
  // waits before it asks Postponed.
  Duration Failed(TimePoint now);
  // Zero: the request may be sent. Else another watch has the next try: ask again after so long.
  Duration Postponed(TimePoint now);
  // The server serves: the next failure begins another outage.
  void Succeeded() { outage_began_.reset(); }

 private:
  const Options options_;
  Jitter jitter_;
  std::optional<TimePoint> outage_began_;
  Duration longest_wait_{};  // of the next try
  TimePoint next_try_{};
};

}  // namespace resmgr::agent
