// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "pkg/base/ids.h"
#include "pkg/model/pod.h"
#include "pkg/model/resource_values.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr::nri {

// What a runtime holds, as far as it has told by its inventory and its events: NRI has no call that
// lists. Loop's thread only.
class RuntimeMirror {
 public:
  void Clear();
  void Add(Pod pod);
  // With its containers.
  void Remove(const PodSandboxId& id);
  void SetPodResources(const PodSandboxId& id, const LinuxResources& overhead,
                       const LinuxResources& resources);
  void Add(RuntimeContainer container);
  // One that the runtime may not come to have: no part of the inventory until it is confirmed.
  void AddPlanned(RuntimeContainer container);
  void Confirm(const ContainerId& id) { planned_.erase(std::string(id.value())); }
  void Remove(const ContainerId& id);
  // It is not ready any more.
  void SetStopped(const PodSandboxId& id) { stopped_.insert(id); }
  // The runtime does not say which of its pods are ready: those without a container that may run
  // are taken for stopped.
  void GuessStopped();
  void SetState(const ContainerId& id, ContainerState state);
  // What the runtime was told to set, or what it says that is in force.
  void Apply(const ContainerId& id, const ResourceValues& values);
  void Merge(const ContainerId& id, const LinuxResources& resources);

  bool Has(const ContainerId& id) const { return containers_.contains(id.value()); }
  bool Has(const PodSandboxId& id) const { return pods_.contains(id.value()); }
  RuntimeInventory Inventory() const;

 private:
  RuntimeContainer* Find(const ContainerId& id);

  std::map<std::string, Pod, std::less<>> pods_;
  std::set<PodSandboxId> stopped_;
  std::map<std::string, RuntimeContainer, std::less<>> containers_;
  std::set<std::string, std::less<>> planned_;  // of the containers
};

}  // namespace resmgr::nri
