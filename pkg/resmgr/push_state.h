// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/resmgr/applied_resources.h"
#include "pkg/sys/clock.h"

namespace resmgr {

// The pusher's (pusher.h) knowledge about one container, kept in its record. Only the pusher and
// its UpdateSender write it.
struct PushState {
  PushState(SharedResources carried, const CpuSet& may_run_on)
      : applied(std::move(carried)), possible(may_run_on) {}

  SharedResources applied;  // confirmed last; during a creation, the values in its request
  bool certain = false;     // nothing was sent since that could have changed `applied`
  bool in_flight = false;
  int forwarded = 0;        // kubelet's updates under way
  bool overlapped = false;  // two updates were under way at once: the last one is not known
  SharedResources sent;     // while `in_flight`: the values that the update should bring into force
  // While `in_flight`: the values in the request of the update.
  std::shared_ptr<const ResourceValues> payload;
  uint64_t update = 0;   // number of updates begun
  bool restore = false;  // the next update puts back what other programs have set
  // Values of other programs that were added to the last update and are thus in the runtime's
  // reports; null if there are none.
  std::shared_ptr<const ResourceValues> kept;
  // Set while the CPUs and memory nodes in force were written into the cgroup past the runtime: the
  // sets in the runtime's own notes, which its next update may put back in force. Null if the
  // runtime knows the sets in force.
  std::shared_ptr<const ResourceValues> noted;
  bool sets_alone = false;  // after a refusal: the next update has CPUs and memory nodes alone
  CpuSet possible;          // CPUs on which it may be running, by the values sent
  CpuSet held;              // CPUs that it may still have exclusively
  // Cache: the container last found on all awaited CPUs, which is checked first. Without it, a
  // first start with 500 containers takes 15 % more CPU time (FirstStartTest).
  mutable ContainerKey in_the_way{};
  EventLoop::HandlePtr retry;
  std::chrono::milliseconds delay{0};
  Status last_error;
  Status explained;  // the last failure for which a likely cause was found, with this cause
  // Since when the container has kept a start waiting or was refused CPUs or memory nodes; reset
  // when it is where it should be.
  std::optional<Clock::SteadyTime> stuck_since;
  bool stuck_told = false;  // a start was refused or let through because of it

  // Whether an update has not been answered yet.
  bool UnderWay() const { return in_flight || forwarded > 0; }
  // Whether only a pause after refused numbers is running, for which new CPUs need not wait.
  bool NumbersWait() const { return certain && retry != nullptr && !UnderWay(); }
  // Whether no update is under way or to be repeated, so that a report of the runtime shows all
  // values sent.
  bool Quiet() const { return certain && !UnderWay() && retry == nullptr; }
  bool Busy() const { return UnderWay() || (retry != nullptr && !NumbersWait()); }

  // Another update is about to be sent or may have been overtaken: if one is under way, it is not
  // known which of them is in force.
  void NoteOverlap() { overlapped = overlapped || UnderWay(); }
  // These values are in force now. `everywhere`: as for Pusher.
  void Take(SharedResources now, const CpuSet& everywhere);
};

// Values that other programs have set, and the last update carried (PushState::kept), are in the
// runtime's reports. Returns the report without them; or with the decided ones in their place.
LinuxResources WithoutValuesOfOthers(const PushState& state, LinuxResources reported);
AppliedResources WithoutValuesOfOthers(const PushState& state, AppliedResources reported,
                                       const Container& container);
// The runtime's report; if it shows the runtime's noted sets, these are replaced by the sets that
// were written into the cgroup.
AppliedResources AsWritten(PushState& state, AppliedResources reported);

// The values in force after an update with the values `sent`: sets that were not sent are from
// `before`.
SharedResources OverApplied(SharedResources sent, const SharedResources& before);
// Numbers that were not sent are as before; they stay unknown if they were.
SharedResources WithNumbersBefore(AppliedResources sent, const PushState& state);
// Returns `resources` without the numbers that `carried` has.
SharedResources WithoutNumbers(const AppliedResources& resources, const ResourceValues& carried);

}  // namespace resmgr
