// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "agent/timers.h"

namespace resmgr::agent {

// Time that passes only when a test says so. Thread-compatible.
class FakeTimers : public Timers {
 public:
  Clock::time_point Now() const override { return now_; }
  HandlePtr After(std::chrono::milliseconds delay, std::function<void()> task) override {
    const Key key{now_ + delay, ++last_};
    (*tasks_)[key] = std::move(task);
    return std::make_unique<Handle>(tasks_, key);
  }

  // Runs what becomes due, in its order.
  void Advance(std::chrono::milliseconds time) {
    const Clock::time_point end = now_ + time;
    while (!tasks_->empty() && tasks_->begin()->first.first <= end) {
      now_ = std::max(now_, tasks_->begin()->first.first);
      const std::function<void()> task = std::move(tasks_->begin()->second);
      tasks_->erase(tasks_->begin());
      task();
    }
    now_ = end;
  }
  // Until the next task; zero where there is none.
  std::chrono::milliseconds NextWait() const {
    if (tasks_->empty()) return {};
    return std::chrono::duration_cast<std::chrono::milliseconds>(tasks_->begin()->first.first -
                                                                 now_);
  }
  // Runs the next task at its time.
  void RunNext() { Advance(NextWait()); }
  size_t waiting() const { return tasks_->size(); }

 private:
  using Key = std::pair<Clock::time_point, int>;
  using Tasks = std::map<Key, std::function<void()>>;

  class Handle : public EventLoop::Handle {
   public:
    Handle(std::shared_ptr<Tasks> tasks, Key key) : tasks_(std::move(tasks)), key_(key) {}
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() override { tasks_->erase(key_); }

   private:
    const std::shared_ptr<Tasks> tasks_;
    const Key key_;
  };

  Clock::time_point now_{std::chrono::hours(1)};
  int last_ = 0;
  std::shared_ptr<Tasks> tasks_ = std::make_shared<Tasks>();
};

}  // namespace resmgr::agent
