// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace resmgr::agent {

// How long to wait before the next try: twice as long after each failure, up to a limit, and each
// time a random part less, so that the agents of a cluster do not come back all at once.
// Thread-compatible.
class Backoff {
 public:
  using Duration = std::chrono::milliseconds;

  struct Options {
    Duration first{200};
    Duration limit{30'000};
  };

  // The seed makes the waits of two agents differ.
  Backoff(Options options, uint64_t seed) : options_(options), random_(seed) {}

  // The wait after another failure: between half of the full wait and all of it.
  Duration Next();
  // Something went well: the next failure is the first again.
  void Reset() { failures_ = 0; }
  // Failures since then.
  int failures() const { return failures_; }

 private:
  const Options options_;
  std::mt19937_64 random_;
  int failures_ = 0;
};

}  // namespace resmgr::agent
