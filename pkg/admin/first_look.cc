// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/first_look.h"

#include <utility>

namespace resmgr {

void FirstLook::Then(EventLoop::Task task) {
  if (IsOver()) {
    task();
    return;
  }
  waiting_.push_back(std::move(task));
  if (timer_ == nullptr)
    timer_ = node_.loop.Every(std::chrono::milliseconds(10), [this] { Look(); });
}

bool FirstLook::IsOver() {
  if (over_) return true;
  // Under the null policy there is nothing to look at.
  const ResourceManager* const manager = node_.host.manager();
  if (manager == nullptr) return true;
  over_ = manager->ready() || std::chrono::steady_clock::now() - started_ >= kLongest;
  return over_;
}

void FirstLook::Look() {
  if (!IsOver()) return;
  const EventLoop::HandlePtr ended = std::exchange(timer_, nullptr);
  for (const EventLoop::Task& task : std::exchange(waiting_, {}))
    task();
}

}  // namespace resmgr
