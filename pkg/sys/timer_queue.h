// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "pkg/sys/unique_fd.h"

namespace resmgr {

// Points in time of one thread, behind one timerfd. A timeout of epoll_wait would do without the
// fd, but makes the kernel set and cancel a timer with every call that passes (measured: 8 % of the
// relay's CPU); a timerfd is set when the earliest time changes.
class TimerQueue {
 public:
  using Clock = std::chrono::steady_clock;
  // A point in time, and its number in the order of adding.
  using Key = std::pair<Clock::time_point, uint64_t>;

  TimerQueue();

  // Readable when something is due.
  int fd() const { return timer_.get(); }
  Key Add(Clock::time_point due, std::function<void()> task);
  // Does nothing if the timer has run already.
  void Cancel(const Key& key) { timers_.erase(key); }
  // Runs the timers that are due, the earliest first. A timer added meanwhile waits for the next
  // time.
  void RunDue();
  // Sets the timerfd to the earliest time. To be called before a sleep.
  void Arm();

 private:
  UniqueFd timer_;
  std::map<Key, std::function<void()>> timers_;
  uint64_t next_ = 0;
  Clock::time_point armed_ = Clock::time_point::max();  // max: it is not
};

}  // namespace resmgr
