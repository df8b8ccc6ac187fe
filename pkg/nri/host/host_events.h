// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/nri/host/dispatch.h"
#include "pkg/nri/host/host_inventory.h"
#include "pkg/nri/host/plugin_updates.h"

namespace resmgr::nri {

// Whether the plugin is told the runtime's id of a container that has one. A plugin that is not
// asked about creations never knows another one.
bool WantsRealIds(const HostedPlugin& plugin);

// Tells plugins what happened to pods and containers, each thing once: stops only of what was not
// told to have stopped, and removals only after the stop (NRI as containerd has it). All of it
// belongs into a turn of the pod (HostPod::turns), which the callers take. `done` runs when all
// have answered, at once where no plugin has subscribed. Loop's thread only.
class HostEvents {
 public:
  using Done = std::function<void(const Status&)>;

  // All outlive it. `budget`: for all plugins together, in all phases of one call.
  HostEvents(Dispatcher& dispatcher, HostInventory& inventory, PluginUpdates& updates,
             std::chrono::milliseconds budget)
      : dispatcher_(dispatcher), inventory_(inventory), updates_(updates), budget_(budget) {}

  void SetBudget(std::chrono::milliseconds budget) { budget_ = budget; }
  // For one call of a client, or for what happens without one.
  Budget NewBudget() const { return Budget(budget_); }

  // A request: a plugin may refuse it. RUN_POD_SANDBOX, START_CONTAINER.
  void Ask(api::Event event, const HostPodPtr& pod, const HostContainerPtr& container,
           const Budget& budget, Done done);
  // Refusals are logged.
  void Tell(api::Event event, const HostPodPtr& pod, const HostContainerPtr& container,
            const Budget& budget, Done done);

  // And carries out what plugins want of others then.
  void Stop(const HostContainerPtr& container, const Budget& budget, Done done);
  // Forgets it, too.
  void Remove(const HostContainerPtr& container, const Budget& budget, Done done);
  // With its containers.
  void StopPod(const HostPodPtr& pod, const Budget& budget, Done done);
  void RemovePod(const HostPodPtr& pod, const Budget& budget, Done done);

 private:
  void Send(Dispatcher::Kind kind, api::Event event, const HostPodPtr& pod,
            const HostContainerPtr& container, const Budget& budget, Done done);

  Dispatcher& dispatcher_;
  HostInventory& inventory_;
  PluginUpdates& updates_;
  std::chrono::milliseconds budget_;
};

}  // namespace resmgr::nri
