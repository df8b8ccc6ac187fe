// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "agent/jitter.h"
#include "pkg/sys/backoff.h"

namespace resmgr::agent {

// The wait before the next try: a random part ("full jitter") of a wait that doubles after each
// failure up to a limit, so that the agents of a cluster do not come back all at once.
// Thread-compatible.
class Backoff {
 public:
  using Duration = std::chrono::milliseconds;

  struct Options {
    Duration first{200};
    Duration limit{30'000};
  };

  // The seed makes the waits of two agents differ.
  Backoff(Options options, uint64_t seed) : pauses_(options.first, options.limit), jitter_(seed) {}

  // The wait after another failure: between nothing and the full wait.
  Duration Next() { return jitter_.UpTo(pauses_.Next()); }
  // Resets the wait after a success: the next failure counts as the first one.
  void Reset() { pauses_.Reset(); }

 private:
  resmgr::Backoff pauses_;
  Jitter jitter_;
};

}  // namespace resmgr::agent
