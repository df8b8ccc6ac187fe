// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <set>
#include <string_view>
#include <vector>

#include "pkg/resmgr/admission.h"
#include "pkg/resmgr/adoption.h"
#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/pod_limits.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// Containers that have exited and may be started again. dockerd starts them on the CPUs of its last
// update. So if no policy binds containers any more, such a container stays bound until dockerd
// gets another update. Loop's thread only.
class ExitedContainers {
 public:
  // The brain must outlive it.
  explicit ExitedContainers(Brain& brain) : brain_(brain) {}
  ExitedContainers(const ExitedContainers&) = delete;
  ExitedContainers& operator=(const ExitedContainers&) = delete;

  // Whether the container stays bound after its exit.
  bool StaysBound(const ContainerRecord& record) const;
  bool AnyBound() const;
  void AddMoves(std::vector<PlannedMove>& moves) const;
  // If the policy is null: soon sends updates that undo their bindings.
  void FreeSoon() { FreeAfter(std::chrono::milliseconds(0)); }

 private:
  bool IsBound(const ContainerRecord& record) const;
  void FreeAfter(std::chrono::milliseconds pause);
  void Free();
  void OnFreed(ContainerKey key, const Status& status);

  Brain& brain_;
  std::set<ContainerKey> being_freed_;
  EventLoop::HandlePtr timer_;
  Lifetime lifetime_;
};

// How containers end: calls, lists, failed updates and newer attempts all use Retire(). Loop's
// thread only.
class Endings {
 public:
  // All must outlive it.
  Endings(Brain& brain, PodLimits& pod_limits, ExitedContainers& exited)
      : brain_(brain), pod_limits_(pod_limits), exited_(exited) {}

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
  // Ends all containers that a list shows as ended or gone. `first`: see
  // PodLimits::ApplyToAdopted. The policy learns of it by the reconciliation that follows.
  void EndListed(const Adoption& adoption, bool first);
  // Ends the attempt that this container replaces.
  void EndSuperseded(ContainerRecord& record);

 private:
  const Placement* Retire(ContainerRecord& record, LifeEvent event);
  void Exit(ContainerRecord& record, LifeEvent event, std::string_view why, ContainerKeys& changed);
  void Leave(ContainerRecord& record, LifeEvent event, std::string_view why,
             ContainerKeys& changed);

  Brain& brain_;
  PodLimits& pod_limits_;
  ExitedContainers& exited_;
};

}  // namespace resmgr
