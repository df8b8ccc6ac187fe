// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/resmgr/adoption.h"
#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/exited_containers.h"

namespace resmgr {

// How containers end: calls, lists, failed updates and newer attempts all end them by Retire().
// Loop's thread only.
class Endings {
 public:
  // Both must outlive it.
  Endings(Brain& brain, ExitedContainers& exited) : brain_(brain), exited_(exited) {}

  // See ResourceManager: PodStopped, PodRemoved, ContainerStopped, ContainerExited,
  // ContainerRemoved.
  void StopPod(const PodSandboxId& id);
  void RemovePod(const PodSandboxId& id);
  void Stop(const ContainerId& id);
  void End(const ContainerId& id) { End(brain_.store.FindById(id), "it ended"); }
  void Remove(const ContainerId& id);

  // The same for a known container; does nothing for nullptr.
  void End(ContainerRecord* record, std::string_view why);
  void Remove(ContainerRecord& record, std::string_view why);
  // Ends the containers of a list all at once. The policy is told by the reconciliation that
  // follows.
  void EndListed(const Adoption& adoption);
  // Ends the attempt that this container takes the place of.
  void EndSuperseded(ContainerRecord& record);

 private:
  const Placement* Retire(ContainerRecord& record, LifeEvent event);
  void Exit(ContainerRecord& record, LifeEvent event, std::string_view why, ContainerKeys& changed);

  Brain& brain_;
  ExitedContainers& exited_;
};

}  // namespace resmgr
