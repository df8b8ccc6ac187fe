// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "pkg/sys/event_loop.h"

namespace resmgr::agent {

// Time as the agent sees it: the event loop's, or a test's own. To be used on the loop's thread.
class Timers {
 public:
  using Clock = std::chrono::steady_clock;
  using HandlePtr = EventLoop::HandlePtr;

  virtual ~Timers() = default;
  virtual Clock::time_point Now() const = 0;
  // Runs the task once after the delay, unless the handle is destroyed before.
  virtual HandlePtr After(std::chrono::milliseconds delay, std::function<void()> task) = 0;
};

class LoopTimers : public Timers {
 public:
  // The loop must outlive this object.
  explicit LoopTimers(EventLoop& loop) : loop_(loop) {}

  Clock::time_point Now() const override { return loop_.Now(); }
  HandlePtr After(std::chrono::milliseconds delay, std::function<void()> task) override {
    return loop_.After(delay, std::move(task));
  }

 private:
  EventLoop& loop_;
};

}  // namespace resmgr::agent
