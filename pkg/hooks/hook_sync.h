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

// Fills the store with what the runtime has: at the start, after a reconnect, whenever a call ended
// without an outcome, and where the store has grown to twice its size. Loop's thread only.
class HookSync {
 public:
  static constexpr std::chrono::milliseconds kRetry{1'000};  // after the runtime did not answer
  static constexpr size_t kLeastGrowth = 64;

  // All outlive it.
  HookSync(resmgr::Clock& clock, RuntimeAccess& runtime, HookStore& store);

  // Asks the runtime, again and again until it answers. What is under way may miss what has just
  // happened: then it is asked once more.
  void Refresh();
  // Objects were added: those that went without a call would pile up.
  void NoteGrowth();
  // Everything was learned at least once.
  bool ready() const { return ready_; }

  // One that the store does not have: while the store is being filled for the first time this waits
  // for it, then the runtime is asked for this one. NotFound: it does not exist. `done` never runs
  // inside this, and not after the end of this object.
  void FindPod(const PodSandboxId& id, std::function<void(StatusOr<HookPodPtr>)> done);
  void FindContainer(const ContainerId& id, std::function<void(StatusOr<HookContainerPtr>)> done);

 private:
  void Ask();
  void Take(const StatusOr<RuntimeAccess::Everything>& everything);
  void AskForPod(const PodSandboxId& id, std::function<void(StatusOr<HookPodPtr>)> done);
  void AskForContainer(const ContainerId& id, std::function<void(StatusOr<HookContainerPtr>)> done);
  // Whether `then` waits for the first list.
  bool Wait(std::function<void()> then);

  resmgr::Clock& clock_;
  RuntimeAccess& runtime_;
  HookStore& store_;
  Logger& log_;
  bool ready_ = false;
  bool asking_ = false;
  bool again_ = false;
  size_t most_ = kLeastGrowth;  // until the next list
  std::vector<std::function<void()>> waiting_;
  EventLoop::HandlePtr retry_;
  Lifetime lifetime_;
};

}  // namespace resmgr::hooks
