// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"
#include "pkg/resmgr/admission.h"
#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/creations.h"
#include "pkg/resmgr/start_gate.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/clock.h"

namespace resmgr {

// StartContainer calls without an answer, which the runtime may still carry out: their client went
// away, the connection was lost, or the daemon was killed. Asks for lists after growing pauses
// until each container runs or has exited. A container that is still only created at the time limit
// counts as not started. Loop's thread only.
class UnresolvedStarts {
 public:
  // Lists everything that the runtime has. When the list is taken over, Examine() must be called,
  // and then `looked`, which gets the error if the list failed. `looked` never runs after the end
  // of the UnresolvedStarts.
  using Look = std::function<void(std::function<void(const Status&)> looked)>;
  // `given_up` is called for containers past the limit.
  UnresolvedStarts(Clock& clock, ContainerStore& store, Look look,
                   std::function<void(ContainerKey)> given_up, const BrainOptions& options);
  UnresolvedStarts(const UnresolvedStarts&) = delete;
  UnresolvedStarts& operator=(const UnresolvedStarts&) = delete;

  // The container's state is kUnresolved from now on.
  void Add(ContainerKey key);
  bool Contains(ContainerKey key) const { return doubts_.contains(key); }
  // Called after a list, or when something else happened to containers.
  void Examine();

 private:
  void Schedule();
  void OnTimer();
  void OnLooked(Clock::SteadyTime asked);

  Clock& clock_;
  ContainerStore& store_;
  const Look look_;
  const std::function<void(ContainerKey)> given_up_;
  const std::chrono::milliseconds limit_;
  struct Doubt {
    Clock::SteadyTime deadline;
    bool last_look = false;  // a list was asked for after the deadline
  };

  std::map<ContainerKey, Doubt> doubts_;
  Backoff pauses_;
  EventLoop::HandlePtr timer_;
};

// StartContainer calls, from the request to a known outcome. A start waits at the gate while other
// containers are on its CPUs (start_gate.h), is noted on disk while it is under way, and is
// resolved by lists if it gets no answer. If the runtime can start exited containers, these are
// placed first. Owns ContainerRecord::started_at and unpinned_warned, and reports the events of
// starts to the container's Lifecycle. Loop's thread only.
class Starts {
 public:
  // All references must outlive it.
  Starts(Brain& brain, Creations& creations);
  Starts(const Starts&) = delete;
  Starts& operator=(const Starts&) = delete;

  // Runs `go` when the container may start: at once, with nullptr returned, when no other
  // container is on its CPUs. Else a refusal is FailedPrecondition naming the container in the way
  // after BrainOptions::start_timeout, unless such failures are ignored, or Unavailable when the
  // connection is lost. For a container that is not known the runtime is asked first: it may have
  // been created by a call that did not pass here.
  std::unique_ptr<StartWait> Admit(const ContainerId& id, std::function<void(Status)> go);
  // Also applies to starts that wait already.
  void SetOnTimeout(FailurePolicy policy) { gate_.SetOnTimeout(policy); }
  // An admitted start has ended, or its outcome will not be reported (kStartSucceeded, kStartFailed
  // or kStartUnanswered).
  void End(const ContainerId& id, LifeEvent outcome);

  // A list was taken over: follows unresolved starts that it shows.
  void OnListed();
  // Something changed that waits may depend on; with `changed`, only this container did.
  void ExamineWaits(std::optional<ContainerKey> changed = std::nullopt) { gate_.Examine(changed); }
  // Ends all waits, since the connection to the runtime is lost.
  void RefuseAll(const Status& status) { gate_.RefuseAll(status); }

 private:
  Status ReviveExited(ContainerRecord& record, RefusalKind refusal);
  void DropRevived(ContainerKey key);
  Status CheckPlaced(const ContainerRecord& record) const;
  // `placed`: why an exited container got no place to start on; OK if there is no such problem.
  std::unique_ptr<StartWait> AdmitKnown(ContainerKey key, const Status& placed,
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
