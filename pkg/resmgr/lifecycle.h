// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "pkg/model/container.h"

namespace resmgr {

// Where a container is in its life, as far as this daemon knows.
enum class LifeState : uint8_t {
  kCreating,    // CreateContainer is under way; there is no id yet
  kCreated,     // exists at the runtime and does not run
  kStarting,    // StartContainer calls are under way: it may run already
  kUnresolved,  // a StartContainer got no answer: it may run, or come up later
  kRunning,
  kExited,
  kGone,  // removed, or never created: its record is about to be erased
};
inline constexpr size_t kLifeStates = 7;

// An event of a container's life, or news about it.
enum class LifeEvent : uint8_t {
  kCreateSucceeded,
  kCreateFailed,
  kStartSent,  // a StartContainer is about to be forwarded
  kStartSucceeded,
  kStartFailed,  // the runtime refused it
  kStartUnanswered,
  kStartExpired,     // an unresolved start counts as not having happened
  kReportedCreated,  // a list shows it in this state
  kReportedRunning,
  kEnded,    // it was stopped, a list shows it exited, or its next attempt replaced it
  kRemoved,  // the runtime has no such container any more
  kRevived,  // it had exited and is about to be started again
};
inline constexpr size_t kLifeEvents = 12;

// The state after the event. kCreated means kStarting if other starts are under way.
LifeState NextState(LifeState state, LifeEvent event);

// The life of one container. The only writer of its state, also of Container::state, which is what
// policies and introspection see. Loop's thread only.
class Lifecycle {
 public:
  LifeState state() const { return state_; }
  // The runtime may be busy starting it.
  bool BeingStarted() const {
    return state_ == LifeState::kStarting || state_ == LifeState::kUnresolved;
  }
  bool MayRun() const { return state_ == LifeState::kRunning || BeingStarted(); }
  // Whether the container may come up on any CPUs: its unresolved start may have read older values
  // than those that the runtime reports.
  bool MayComeUpAnywhere() const { return cpus_unknown_; }
  // Whether a start is wanted or under way that began while it ran or had exited: the runtime may
  // report it as exited until the start is carried out.
  bool ComesBack() const { return comes_back_; }
  // Called when the start that was just sent may restart a running container.
  void ExpectReturn() { comes_back_ = comes_back_ || state_ == LifeState::kRunning; }

  // `container` is the container whose life this is.
  void Apply(LifeEvent event, Container& container);
  // Called for an unresolved start of an earlier daemon that left no notes; the effect ends when
  // the start is resolved.
  void SetCpusUnknown() { cpus_unknown_ = state_ == LifeState::kUnresolved; }

 private:
  void FollowReturn(LifeState before, LifeEvent event);

  LifeState state_ = LifeState::kCreating;
  bool cpus_unknown_ = false;
  bool comes_back_ = false;
  int open_starts_ = 0;  // StartContainer calls that were forwarded and are not answered
};

}  // namespace resmgr
