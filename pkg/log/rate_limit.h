// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace resmgr {

// Limits a message that outsiders can provoke: the first `burst` ones of each period pass, the rest
// are counted. A period starts with the first message after the end of the former one.
// Thread-compatible.
//
//   if (const auto suppressed = limit.Pass(loop.Now())) {
//     log.Warn("... ({} more like this were not logged)", *suppressed);
//   }
class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;

  RateLimit(uint32_t burst, Clock::duration period) : burst_(burst), period_(period) {}

  // nullopt: do not log the message. Otherwise log it, with the number suppressed since the last
  // one.
  std::optional<uint64_t> Pass(Clock::time_point now) {
    if (now >= end_) {
      end_ = now + period_;
      passed_ = 0;
    }
    if (passed_ == burst_) {
      ++suppressed_;
      return std::nullopt;
    }
    ++passed_;
    return std::exchange(suppressed_, 0);
  }

 private:
  const uint32_t burst_;
  const Clock::duration period_;
  Clock::time_point end_ = Clock::time_point::min();
  uint32_t passed_ = 0;
  uint64_t suppressed_ = 0;
};

}  // namespace resmgr
