// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/nri/host/session/dispatch.h"
#include "pkg/nri/host/stage/plugin_updates.h"
#include "pkg/nri/host/view/host_view.h"

namespace resmgr::nri {

// Whether the plugin gets containers' real ids: by its settings, or because it does not see
// creations.
bool WantsRealIds(const HostedPlugin& plugin);

// Tells plugins the events of pods and containers, each once: a stop only if no stop was told
// before, and a removal only after the stop (as containerd's NRI does). The caller must hold a turn
// of the pod (HostPod::turns). `done` runs when all have answered, at once if no plugin has
// subscribed. Loop's thread only.
class HostEvents {
 public:
  using Done = std::function<void(const Status&)>;

  // All outlive this object. `budget`: for all plugins together, in all phases of one call.
  HostEvents(Dispatcher& dispatcher, HostView& view, PluginUpdates& updates,
             std::chrono::milliseconds budget)
      : dispatcher_(dispatcher), view_(view), updates_(updates), budget_(budget) {}

  void SetBudget(std::chrono::milliseconds budget) { budget_ = budget; }
  // A budget for one call of a client, or for an event without a call.
  Budget NewBudget() const { return Budget(budget_); }

  // Sends a request, which a plugin may refuse: RUN_POD_SANDBOX, START_CONTAINER.
  void Ask(Dispatcher::Kind kind, api::Event event, const HostPodPtr& pod,
           const HostContainerPtr& container, const Budget& budget, Done done);
  // Sends a notice; refusals are logged.
  void Tell(api::Event event, const HostPodPtr& pod, const HostContainerPtr& container,
            const Budget& budget, Done done);

  // Tells a stop, and carries out the updates of other containers in the answers.
  void Stop(const HostContainerPtr& container, const Budget& budget, Done done);
  // Tells a removal, and forgets the container.
  void Remove(const HostContainerPtr& container, const Budget& budget, Done done);
  // Also stops its containers.
  void StopPod(const HostPodPtr& pod, const Budget& budget, Done done);
  void RemovePod(const HostPodPtr& pod, const Budget& budget, Done done);

 private:
  Dispatcher& dispatcher_;
  HostView& view_;
  PluginUpdates& updates_;
  std::chrono::milliseconds budget_;
};

}  // namespace resmgr::nri
