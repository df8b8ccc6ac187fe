// SPDX-License-Identifier: Apache-2.0
// Updates that outlive what is known of their containers. A container that has ended may come back
// and be updated again: by then an earlier update may still be under way, which would take effect
// after the new one.
#include "pkg/resmgr/pusher.h"

namespace resmgr {

void Pusher::Forget(ContainerKey key) {
  if (ContainerRecord* const record = Followed(key); record != nullptr) {
    const int unanswered = record->push->forwarded + (record->push->in_flight ? 1 : 0);
    if (unanswered > 0) strays_[key] += unanswered;
    record->push.reset();
  }
  leftovers_.erase(key);
  held_back_.erase(key);
  ResumeHeldBack();
}

// Whether an answer is of such an update. The next one is sent after it.
bool Pusher::TakeStray(ContainerKey key) {
  if (!HasStray(key)) return false;
  const auto stray = strays_.find(key);
  if (--stray->second == 0) {
    strays_.erase(stray);
    Step(key);
  }
  return true;
}

}  // namespace resmgr
