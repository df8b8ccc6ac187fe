// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/hooks/hook_store.h"
#include "pkg/log/log.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::hooks {

// Fills the store from the runtime: at the start, after a reconnect, whenever a call ended without
// an outcome, and when the store has grown to twice its size. Loop's thread only.
class HookSync {
 public:
  static constexpr std::chrono::milliseconds kRetry{1'000};  // pause after a failure
  static constexpr size_t kLeastGrowth = 64;

  // All outlive this object.
  HookSync(resmgr::Clock& clock, RuntimeAccess& runtime, HookStore& store);

  // Asks the runtime until it answers. A list under way may miss recent events, so another one
  // follows it.
  void Refresh();
  // Called after objects were added: records whose removal was not noticed would pile up.
  void NoteGrowth();
  // True once a list has succeeded.
  bool ready() const { return ready_; }

  // Finds one that the store does not have: waits for the first list if that is under way, then
  // asks the runtime for this one. kNotFound: it does not exist. `done` never runs inside this
  // call, and not after the end of this object.
  void FindPod(const PodSandboxId& id, std::function<void(StatusOr<HookPodPtr>)> done);
  void FindContainer(const ContainerId& id, std::function<void(StatusOr<HookContainerPtr>)> done);

 private:
  void Ask();
  void Take(const StatusOr<RuntimeAccess::Everything>& everything);
  void AskForPod(const PodSandboxId& id, std::function<void(StatusOr<HookPodPtr>)> done);
  void AskForContainer(const ContainerId& id, std::function<void(StatusOr<HookContainerPtr>)> done);
  // Queues `then` if the first list is under way; false otherwise.
  bool Wait(std::function<void()> then);

  resmgr::Clock& clock_;
  RuntimeAccess& runtime_;
  HookStore& store_;
  Logger& log_;
  bool ready_ = false;
  bool asking_ = false;
  bool again_ = false;
  size_t most_ = kLeastGrowth;  // size of the store that causes the next list
  std::vector<std::function<void()>> waiting_;
  EventLoop::HandlePtr retry_;
  Lifetime lifetime_;
};

}  // namespace resmgr::hooks
