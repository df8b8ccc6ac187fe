// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/nri/host/host_events.h"
#include "pkg/nri/host/host_inventory.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

// Updates the inventory from the runtime: at the start, and again whenever a call ended without an
// outcome. Plugins are told of containers that were stopped or removed meanwhile. Loop's thread
// only.
class InventorySync {
 public:
  struct Options {
    std::chrono::milliseconds retry{1'000};  // pause after the runtime did not answer
  };

  // All outlive this object.
  InventorySync(EventLoop& loop, RuntimeAccess& runtime, HostInventory& inventory,
                HostEvents& events, Options options);

  // Asks the runtime until it answers. A list under way may miss recent events, so another one
  // follows it.
  void Refresh();
  // Calls Refresh; `done` runs when that has ended, or failed for the first time.
  void AfterRefresh(std::function<void(const Status&)> done);
  // True once a list has succeeded.
  bool ready() const { return ready_; }

 private:
  void Ask();
  // Takes a turn of the pod; nothing runs after the end of this object.
  void InTurn(HostPod& pod, std::function<void(Turns::Turn)> begin);
  void Take(const StatusOr<RuntimeAccess::Everything>& everything);
  void TakePods(const std::vector<SandboxFacts>& sandboxes);
  void TakeContainers(const std::vector<ContainerFacts>& containers);
  void Add(const ContainerFacts& facts);
  // Removes records from before the list that are not in it.
  void DropMissing(const RuntimeAccess::Everything& everything);

  EventLoop& loop_;
  RuntimeAccess& runtime_;
  HostInventory& inventory_;
  HostEvents& events_;
  const Options options_;
  Logger& log_;
  bool ready_ = false;
  bool asking_ = false;
  bool again_ = false;
  std::vector<HostPodPtr> pods_before_;
  std::vector<HostContainerPtr> containers_before_;
  using Waiting = std::vector<std::function<void(const Status&)>>;
  Waiting waiting_;  // for the next list
  Waiting served_;   // by the list under way
  EventLoop::HandlePtr retry_;
  Lifetime lifetime_;
};

}  // namespace resmgr::nri
