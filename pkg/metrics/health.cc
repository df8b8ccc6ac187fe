// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/health.h"

#include <utility>

#include <fmt/format.h>

namespace resmgr {

void Health::SetNotReady(std::string why) {
  const std::lock_guard lock(mutex_);
  not_ready_ = std::move(why);
}

std::string Health::Sickness(Clock::time_point now) const {
  const Clock::time_point last = last_beat_.load();
  if (last == Clock::time_point{} || now - last <= patience_) return "";
  return fmt::format("the event loop stands still for {} s",
                     std::chrono::duration_cast<std::chrono::seconds>(now - last).count());
}

std::string Health::WhyNotReady() const {
  const std::lock_guard lock(mutex_);
  return not_ready_;
}

}  // namespace resmgr
