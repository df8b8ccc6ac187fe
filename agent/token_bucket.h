// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

namespace resmgr::agent {

// Limits how often something is done: `burst` times at once, then once in each period.
// Thread-compatible.
class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    int burst = 10;
    std::chrono::milliseconds period{1000};
  };

  explicit TokenBucket(Options options) : options_(options) {}

  // Time until it may be done; zero: now.
  std::chrono::milliseconds Wait(Clock::time_point now) const {
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::ceil<std::chrono::milliseconds>(Earliest() - now));
  }
  // Takes a token, also before one is there; then the next taker waits longer.
  void Take(Clock::time_point now) { full_at_ = std::max(full_at_, now) + options_.period; }

 private:
  // With one token left the bucket is full (burst - 1) periods later.
  Clock::time_point Earliest() const { return full_at_ - (options_.burst - 1) * options_.period; }

  const Options options_;
  Clock::time_point full_at_{};
};

}  // namespace resmgr::agent
