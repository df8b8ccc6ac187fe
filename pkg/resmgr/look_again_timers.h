// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "pkg/resmgr/container_store.h"
#include "pkg/sys/clock.h"

namespace resmgr {

// Tells when the policy wants to be asked again about a running container
// (Placement::look_again_after): one timer for each container. Loop's thread only.
class LookAgainTimers {
 public:
  // Runs on the loop, and never inside a call from below.
  using Due = std::function<void(ContainerKey)>;

  // The clock must outlive it.
  LookAgainTimers(Clock& clock, Due due) : clock_(clock), due_(std::move(due)) {}

  // The container's placement or state may have changed. The time counts from the start that the
  // record knows of, else from now; when it has passed already, the container is due at once.
  void Follow(const ContainerRecord& record);
  void Forget(ContainerKey key) { timers_.erase(key); }

 private:
  Clock& clock_;
  const Due due_;
  std::map<ContainerKey, EventLoop::HandlePtr> timers_;
};

}  // namespace resmgr
