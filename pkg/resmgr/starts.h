// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pkg/base/failure_policy.h"
#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/observer.h"
#include "pkg/resmgr/pusher.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/start_gate.h"
#include "pkg/resmgr/state_writer.h"
#include "pkg/resmgr/synchronizer.h"
#include "pkg/resmgr/unresolved_starts.h"
#include "pkg/sys/clock.h"

namespace resmgr {

// StartContainer calls, from the request to a known outcome. A start waits at the gate while other
// containers are on its CPUs (start_gate.h), is noted on disk while it is under way, and is
// resolved by lists where it got no answer (unresolved_starts.h). A container that has exited,
// where the runtime starts such containers, is placed first. Owns ContainerRecord::started_at and
// unpinned_warned, and reports the events of starts to the container's Lifecycle. Loop's thread
// only.
class Starts {
 public:
  enum class Outcome { kStarted, kFailed, kUnanswered };

  class Owner {
   public:
    virtual ~Owner() = default;
    // The container's start is over, or its outcome is unknown: what is sent to it, and the starts
    // that wait for it, may change.
    virtual void OnStartProgress(ContainerKey key) = 0;
    // Places a container that has exited and is to be started again, as at its creation. A refusal
    // changes nothing; a tentative one, for lack of CPUs, is not reported.
    virtual Status Revive(ContainerRecord& record, ResourceManager::Refusal refusal) = 0;
    // A container that was revived was not started.
    virtual void EndRevived(ContainerRecord& record) = 0;
    // For observers: the container as it is, without moves of others.
    virtual Observer::Act ActAt(const ContainerRecord& record) const = 0;
    // What the client is told of a refusal.
    virtual Status AsRefusal(const ContainerRecord& record, const Status& why) const = 0;
  };

  struct Options {
    std::chrono::milliseconds timeout{};  // of a wait at the gate
    FailurePolicy on_timeout = FailurePolicy::kFail;
    UnresolvedStarts::Options unresolved{};
    bool starts_exited = false;  // RuntimeClient::StartsExited
  };

  // All references must outlive it.
  Starts(Clock& timers, ContainerStore& store, Pusher& pusher, StateWriter& state_writer,
         Synchronizer& synchronizer, Clock& clock, Observer& observer, Owner& owner,
         const Options& options);
  Starts(const Starts&) = delete;
  Starts& operator=(const Starts&) = delete;

  // See ResourceManager::AdmitStart.
  std::unique_ptr<ResourceManager::StartWait> Admit(const ContainerId& id,
                                                    std::function<void(Status)> go);
  // Holds for starts that wait already, too.
  void SetOnTimeout(FailurePolicy policy) { gate_.SetOnTimeout(policy); }
  // A start that was admitted is over, or its outcome will not be told.
  void End(const ContainerId& id, Outcome outcome);

  // A list was taken over: follows the unresolved starts that it shows.
  void OnListed();
  // Something changed that waits may depend on; `changed` alone changed.
  void ExamineWaits() { gate_.Examine(); }
  void ExamineWaits(ContainerKey changed) { gate_.Examine(changed); }
  // The connection to the runtime is lost.
  void RefuseAll(const Status& status) { gate_.RefuseAll(status); }

 private:
  Status ReviveExited(ContainerRecord& record, ResourceManager::Refusal refusal);
  void DropRevived(ContainerKey key);
  Status CheckPlaced(const ContainerRecord& record) const;
  // `placed`: whether it has a place to start on.
  std::unique_ptr<StartGate::Wait> AdmitKnown(ContainerKey key, const Status& placed,
                                              std::function<void(Status)> go);
  void OnForced(ContainerKey key, const std::string& reason);
  void OnExpired(ContainerKey key);
  void WarnUnpinned(ContainerKey key);
  bool AnyExclusive() const;

  Logger& log_;
  ContainerStore& store_;
  Pusher& pusher_;
  StateWriter& state_writer_;
  Synchronizer& synchronizer_;
  Clock& clock_;
  Observer& observer_;
  Owner& owner_;
  const bool starts_exited_;
  StartGate gate_;
  UnresolvedStarts unresolved_;
};

}  // namespace resmgr
