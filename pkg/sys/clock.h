// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "pkg/sys/event_loop.h"

namespace resmgr {

// The clock for long waits; tests and simulations use clocks of their own. Loop's thread only.
class Clock {
 public:
  using Time = std::chrono::system_clock::time_point;
  using SteadyTime = std::chrono::steady_clock::time_point;

  virtual ~Clock() = default;
  // Wall-clock time, comparable with the times that runtimes report; an administrator may set it at
  // any moment.
  virtual Time Now() const = 0;
  // Steady time, for measuring durations.
  virtual SteadyTime Steady() const = 0;
  // As EventLoop::After.
  virtual EventLoop::HandlePtr After(std::chrono::milliseconds delay, EventLoop::Task task) = 0;
};

// The machine's clock, with timers of the loop.
class LoopClock : public Clock {
 public:
  // The loop must outlive it.
  explicit LoopClock(EventLoop& loop) : loop_(loop) {}

  Time Now() const override { return std::chrono::system_clock::now(); }
  SteadyTime Steady() const override { return loop_.Now(); }
  EventLoop::HandlePtr After(std::chrono::milliseconds delay, EventLoop::Task task) override {
    return loop_.After(delay, std::move(task));
  }

 private:
  EventLoop& loop_;
};

// A clock whose time passes only in Advance.
class ManualClock : public Clock {
 public:
  ManualClock() : timers_(std::make_shared<Timers>()) {}

  Time Now() const override { return now_; }
  SteadyTime Steady() const override { return SteadyTime(now_.time_since_epoch()); }
  EventLoop::HandlePtr After(std::chrono::milliseconds delay, EventLoop::Task task) override;

  // Lets time pass: runs the timers that become due, ordered by time and then by when they were
  // set.
  void Advance(std::chrono::milliseconds time);
  // The time until the next timer; zero if there is none.
  std::chrono::milliseconds NextWait() const;
  // Advances to the next timer and runs it.
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
