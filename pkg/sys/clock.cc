// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/clock.h"

namespace resmgr {

class ManualClock::Handle : public EventLoop::Handle {
 public:
  Handle(const std::shared_ptr<Timers>& timers, const When& when) : timers_(timers), when_(when) {}
  ~Handle() override {
    if (const auto timers = timers_.lock()) timers->erase(when_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

 private:
  std::weak_ptr<Timers> timers_;
  When when_;
};

EventLoop::HandlePtr ManualClock::After(std::chrono::milliseconds delay, EventLoop::Task task) {
  const When when{now_ + delay, ++last_};
  timers_->emplace(when, std::move(task));
  return std::make_unique<Handle>(timers_, when);
}

std::chrono::milliseconds ManualClock::NextWait() const {
  if (timers_->empty()) return {};
  return std::chrono::duration_cast<std::chrono::milliseconds>(timers_->begin()->first.first -
                                                               now_);
}

void ManualClock::Advance(std::chrono::milliseconds time) {
  const Time end = now_ + time;
  while (!timers_->empty() && timers_->begin()->first.first <= end) {
    auto due = timers_->extract(timers_->begin());
    now_ = due.key().first;
    due.mapped()();
  }
  now_ = end;
}

}  // namespace resmgr
