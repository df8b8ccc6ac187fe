// SPDX-License-Identifier: Apache-2.0
// Updates that outlive the records of their containers. A container that has ended may come back
// and be updated again: by then an earlier update may still be under way, which would take effect
// after the new one.
#include "pkg/resmgr/pusher.h"

namespace resmgr {

void Pusher::Forget(ContainerKey key) {
  if (ContainerRecord* const record = Followed(key); record != nullptr) {
    const PushState& state = *record->push;
    if (state.in_flight || state.forwarded > 0) {
      Stray& stray = strays_[key];
      stray.own += state.in_flight ? 1 : 0;
      stray.forwarded += state.forwarded;
    }
    record->push.reset();
  }
  leftovers_.erase(key);
  held_back_.erase(key);
  ResumeHeldBack();
}

// Whether an answer belongs to such an update. The container's next update is sent after it, and
// others may wait for that. An answer to a client is never that of an update of our own.
bool Pusher::TakeStray(ContainerKey key, int Stray::*kind) {
  if (!HasStray(key)) return false;
  const auto stray = strays_.find(key);
  if (stray->second.*kind == 0) return false;
  --(stray->second.*kind);
  if (stray->second.own == 0 && stray->second.forwarded == 0) {
    strays_.erase(stray);
    Step(key);
    ResumeHeldBack();
  }
  return true;
}

}  // namespace resmgr
