// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace resmgr {

// The time of one call here and at the runtime, for the metrics. Reads no clock before Begin.
class CallClock {
 public:
  using Clock = std::chrono::steady_clock;

  void Begin() { began_ = Clock::now(); }
  bool begun() const { return began_ != Clock::time_point{}; }
  // Called when the runtime is asked; the first call counts.
  void NoteForwarded() {
    if (begun() && forwarded_ == Clock::time_point{}) forwarded_ = Clock::now();
  }
  // Called when the runtime has answered; the last call counts.
  void NoteAnswered() {
    if (forwarded_ != Clock::time_point{}) answered_ = Clock::now();
  }

  struct Spent {
    Clock::duration ours;
    Clock::duration runtime;  // 0: it was not asked
  };
  // The times until now. A runtime that has not answered has the time until now.
  Spent Read() const {
    const Clock::time_point now = Clock::now();
    Clock::duration runtime{0};
    if (forwarded_ != Clock::time_point{}) {
      runtime = (answered_ == Clock::time_point{} ? now : answered_) - forwarded_;
    }
    return {now - began_ - runtime, runtime};
  }

 private:
  Clock::time_point began_{};
  Clock::time_point forwarded_{};
  Clock::time_point answered_{};
};

}  // namespace resmgr
