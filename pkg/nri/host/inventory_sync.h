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

// Brings the inventory in line with what the runtime has: at the start, and again whenever a call
// ended without an outcome. Plugins are told of what stopped and what went meanwhile. Loop's thread
// only.
class InventorySync {
 public:
  struct Options {
    std::chrono::milliseconds retry{1'000};  // after the runtime could not be asked
  };

  // All outlive it.
  InventorySync(EventLoop& loop, RuntimeAccess& runtime, HostInventory& inventory,
                HostEvents& events, Options options);

  // Asks the runtime, again and again until it answers. What is under way may miss what has just
  // happened: then it is asked once more.
  void Refresh();
  // As Refresh; `done` runs when that has ended, or failed for the first time.
  void AfterRefresh(std::function<void(const Status&)> done);
  // Everything was learned at least once.
  bool ready() const { return ready_; }

 private:
  void Ask();
  // Unless this has ended.
  void InTurn(HostPod& pod, std::function<void(Turns::Turn)> begin);
  void Take(const StatusOr<RuntimeAccess::Everything>& everything);
  void TakePods(const std::vector<SandboxFacts>& sandboxes);
  void TakeContainers(const std::vector<ContainerFacts>& containers);
  void Add(const ContainerFacts& facts);
  // What was there before the runtime was asked, and is not in its answer.
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
  Waiting waiting_;  // for the one that begins next
  Waiting served_;   // by the one that is under way
  EventLoop::HandlePtr retry_;
  Lifetime lifetime_;
};

}  // namespace resmgr::nri
