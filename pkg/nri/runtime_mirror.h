// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include <absl/container/flat_hash_set.h>
#include <absl/container/node_hash_map.h>

#include "pkg/base/ids.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr::nri {

// The runtime's pods and containers, from its inventory and its events: NRI has no call that lists.
// Loop's thread only.
class RuntimeMirror {
 public:
  void Clear();
  void Add(Pod pod);
  // Also removes its containers.
  void Remove(const PodSandboxId& id);
  void SetPodResources(const PodSandboxId& id, const LinuxResources& overhead,
                       const LinuxResources& resources);
  void Add(RuntimeContainer container);
  // Adds a container whose creation may fail: it is not in the inventory until it is confirmed.
  void AddPlanned(RuntimeContainer container);
  void Confirm(const ContainerId& id);
  void Remove(const ContainerId& id);
  // The pod is not ready any more.
  void SetStopped(const PodSandboxId& id) { stopped_.insert(id); }
  // The runtime does not report which pods are ready: those without a container that may run count
  // as stopped, until one is added.
  void GuessStopped();
  // Returns whether the container has this state now. One that has ended stays so: it never runs
  // again, and the report of its start may follow that of its end.
  bool SetState(const ContainerId& id, ContainerState state);
  // Applies values that the runtime has been asked to set, or that it reports as in force.
  void Merge(const ContainerId& id, const LinuxResources& resources);
  // The runtime gets values that other plugins may still change, so the values in force are unknown
  // until the runtime reports them.
  void SetUntold(const ContainerId& id);
  // The runtime reports that these CPU numbers are in force.
  void SetTold(const ContainerId& id, const LinuxResources& in_force);
  // Notes the reported CPUs and memory nodes of a new container; empty if there are none.
  void SetToldSets(const ContainerId& id, const LinuxResources& in_force);

  bool Has(const ContainerId& id) const { return containers_.contains(id); }
  bool Has(const PodSandboxId& id) const { return pods_.contains(id); }
  // Pods and containers in the order of their ids.
  RuntimeInventory Inventory() const;

 private:
  RuntimeContainer* Find(const ContainerId& id);

  absl::node_hash_map<PodSandboxId, Pod, TextHash> pods_;
  std::set<PodSandboxId> stopped_;          // by events
  std::set<PodSandboxId> guessed_stopped_;  // GuessStopped
  absl::node_hash_map<ContainerId, RuntimeContainer, TextHash> containers_;
  absl::flat_hash_set<ContainerId, TextHash> planned_;  // planned containers
};

// The containers that were sent updates before they were known to run. Runtimes report such an
// update as done although it may have no effect: containerd does not know a container while
// creating it, and only changes its record of a container that is created but not started. A plugin
// hears of a start only afterwards. Loop's thread only.
class EarlyUpdates {
 public:
  void Clear() { sent_.clear(); }
  // The container does not run yet.
  void Add(const ContainerId& id) { sent_.insert_or_assign(std::string(id.value()), false); }
  // The container runs, or never will.
  void Remove(const ContainerId& id) { sent_.erase(std::string(id.value())); }
  // Keeps the containers for which the predicate is true.
  template <typename Predicate>
  void Keep(const Predicate& predicate) {
    std::erase_if(sent_, [&](const auto& each) { return !predicate(ContainerId(each.first)); });
  }
  // Notes that the container is sent an update.
  void Sent(const ContainerId& id) {
    if (const auto found = sent_.find(id.value()); found != sent_.end()) found->second = true;
  }
  bool WasSent(const ContainerId& id) const {
    const auto found = sent_.find(id.value());
    return found != sent_.end() && found->second;
  }

 private:
  std::map<std::string, bool, std::less<>> sent_;
};

}  // namespace resmgr::nri
