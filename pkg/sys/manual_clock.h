// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "pkg/sys/clock.h"

namespace resmgr {

// A clock whose time passes only in Advance.
class ManualClock : public Clock {
 public:
  ManualClock() : timers_(std::make_shared<Timers>()) {}

  Time Now() const override { return now_; }
  SteadyTime Steady() const override { return SteadyTime(now_.time_since_epoch()); }
  EventLoop::HandlePtr After(std::chrono::milliseconds delay, EventLoop::Task task) override;

  // Runs the timers that become due, by time and then by the order in which they were set.
  void Advance(std::chrono::milliseconds time);
  // Until the next timer; zero where there is none.
  std::chrono::milliseconds NextWait() const;
  // Runs the next timer at its time.
  void RunNext() { Advance(NextWait()); }
  size_t timers() const { return timers_->size(); }

 private:
  using When = std::pair<Time, uint64_t>;
  using Timers = std::map<When, EventLoop::Task>;
  class Handle;

  Time now_{std::chrono::hours(24)};
  uint64_t last_ = 0;
  std::shared_ptr<Timers> timers_;  // handles may outlive the clock
};

}  // namespace resmgr
