// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/timer_queue.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <sys/timerfd.h>
#include <unistd.h>

namespace resmgr {

TimerQueue::TimerQueue() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (timer_.valid()) return;
  std::perror("creating a timerfd");
  std::abort();
}

TimerQueue::Key TimerQueue::Add(Clock::time_point due, std::function<void()> task) {
  const Key key(due, next_++);
  timers_.emplace(key, std::move(task));
  return key;
}

void TimerQueue::RunDue() {
  uint64_t expirations = 0;
  [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &expirations, sizeof(expirations));
  armed_ = Clock::time_point::max();
  const Clock::time_point now = Clock::now();
  const uint64_t added_before = next_;
  while (!timers_.empty()) {
    const Key key = timers_.begin()->first;
    if (key.first > now || key.second >= added_before) return;
    auto node = timers_.extract(timers_.begin());
    node.mapped()();
  }
}

void TimerQueue::Arm() {
  const Clock::time_point earliest =
      timers_.empty() ? Clock::time_point::max() : timers_.begin()->first.first;
  if (earliest == armed_) return;
  armed_ = earliest;
  itimerspec time{};  // all zero stops it
  if (earliest != Clock::time_point::max()) {
    constexpr auto kSecond = std::chrono::nanoseconds(std::chrono::seconds(1)).count();
    const auto since = std::max<int64_t>(earliest.time_since_epoch().count(), 1);
    time.it_value = {.tv_sec = since / kSecond, .tv_nsec = since % kSecond};
  }
  if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &time, nullptr) == 0) return;
  std::perror("setting a timerfd");
  std::abort();
}

}  // namespace resmgr
