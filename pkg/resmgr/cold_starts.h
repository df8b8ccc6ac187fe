// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "pkg/resmgr/clock.h"
#include "pkg/resmgr/container_store.h"

namespace resmgr {

// Knows when the cold start of each running container is over (Placement::cold_start): one timer
// each, nothing in between. Loop's thread only.
class ColdStarts {
 public:
  // Runs on the loop, and never inside a call from below.
  using Over = std::function<void(ContainerKey)>;

  // The clock must outlive it.
  ColdStarts(Clock& clock, Over over) : clock_(clock), over_(std::move(over)) {}

  // The container's placement or state may have changed. The time counts from the start that the
  // record knows of, else from now; when it has passed already, it is over at once.
  void Follow(const ContainerRecord& record);
  void Forget(ContainerKey key) { timers_.erase(key); }

 private:
  Clock& clock_;
  const Over over_;
  std::map<ContainerKey, EventLoop::HandlePtr> timers_;
};

}  // namespace resmgr
