// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/look_again_timers.h"

#include <algorithm>
#include <chrono>

namespace resmgr {

void LookAgainTimers::Follow(const ContainerRecord& record) {
  using std::chrono::milliseconds;
  const ContainerKey key = record.container.key;
  const milliseconds duration = record.container.placement.look_again_after;
  const bool runs = record.container.state == ContainerState::kRunning && record.Placeable();
  if (!runs || duration.count() == 0) {
    if (!timers_.empty()) timers_.erase(key);
    return;
  }
  if (timers_.contains(key)) return;
  // The clock may have been set back since the start, or be another one than the runtime's.
  const Clock::Time now = clock_.Now();
  const milliseconds elapsed =
      std::clamp(std::chrono::duration_cast<milliseconds>(now - record.started_at.value_or(now)),
                 milliseconds(0), duration);
  timers_[key] = clock_.After(duration - elapsed, [this, key] {
    timers_.erase(key);
    due_(key);
  });
}

}  // namespace resmgr
