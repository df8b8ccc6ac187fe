// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"
#include "pkg/resmgr/admission.h"
#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/creations.h"
#include "pkg/resmgr/start_gate.h"
#include "pkg/resmgr/unresolved_starts.h"

namespace resmgr {

// StartContainer calls, from the request to a known outcome. A start waits at the gate while other
// containers are on its CPUs (start_gate.h), is noted on disk while it is under way, and is
// resolved by lists where it got no answer (unresolved_starts.h). A container that has exited,
// where the runtime starts such containers, is placed first. Owns ContainerRecord::started_at and
// unpinned_warned, and reports the events of starts to the container's Lifecycle. Loop's thread
// only.
class Starts {
 public:
  struct Options {
    std::chrono::milliseconds timeout{};  // of a wait at the gate
    FailurePolicy on_timeout = FailurePolicy::kFail;
    UnresolvedStarts::Options unresolved{};
  };

  // All references must outlive it.
  Starts(Brain& brain, Creations& creations, const Options& options);
  Starts(const Starts&) = delete;
  Starts& operator=(const Starts&) = delete;

  // See ResourceManager::AdmitStart.
  std::unique_ptr<StartWait> Admit(const ContainerId& id, std::function<void(Status)> go);
  // Holds for starts that wait already, too.
  void SetOnTimeout(FailurePolicy policy) { gate_.SetOnTimeout(policy); }
  // An admitted start has ended, or its outcome will not be reported (kStartSucceeded, kStartFailed
  // or kStartUnanswered).
  void End(const ContainerId& id, LifeEvent outcome);

  // A list was taken over: follows the unresolved starts that it shows.
  void OnListed();
  // Something changed that waits may depend on; `changed` alone changed.
  void ExamineWaits() { gate_.Examine(); }
  void ExamineWaits(ContainerKey changed) { gate_.Examine(changed); }
  // The connection to the runtime is lost.
  void RefuseAll(const Status& status) { gate_.RefuseAll(status); }

 private:
  Status ReviveExited(ContainerRecord& record, RefusalKind refusal);
  void DropRevived(ContainerKey key);
  Status CheckPlaced(const ContainerRecord& record) const;
  // `placed`: whether it has a place to start on.
  std::unique_ptr<StartGate::Wait> AdmitKnown(ContainerKey key, const Status& placed,
                                              std::function<void(Status)> go);
  void OnForced(ContainerKey key, const std::string& reason);
  void OnExpired(ContainerKey key);
  void WarnUnpinned(ContainerKey key);
  bool AnyExclusive() const;

  Brain& brain_;
  Creations& creations_;
  const bool starts_exited_;
  StartGate gate_;
  UnresolvedStarts unresolved_;
};

}  // namespace resmgr
