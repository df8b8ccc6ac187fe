// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/resources.h"
#include "pkg/sys/clock.h"

namespace resmgr {

// The values that a runtime enforces for one container, as far as placements decide them: the
// values of a request that was sent to it, or those that it reported.
struct AppliedResources : ResourceValues {
  CpuSet exclusive;  // the part of `cpus` that was granted to this container alone

  friend bool operator==(const AppliedResources&, const AppliedResources&) = default;
};

// The values that should be in force: those of the placement, and the container's own request for
// numbers that the placement leaves alone, so that a value is restored when the policy no longer
// overrides it. A number that was set later (NumbersSetLater) stays.
AppliedResources DesiredResources(const Container& container);

// Immutable and never null.
using SharedResources = std::shared_ptr<const AppliedResources>;

inline SharedResources Shared(AppliedResources resources) {
  return std::make_shared<const AppliedResources>(std::move(resources));
}

// The numbers in force, for any placement and request.
CpuNumbers NumbersInForce(const NumbersSetLater& later, const ResourceValues& placed,
                          const LinuxResources& requested);

// The values that the runtime reports to be in force.
AppliedResources ReportedResources(const LinuxResources& resources);

// The report, completed by the numbers that it may lack: if the policy does not override them, they
// are as requested.
AppliedResources Completed(AppliedResources reported, const Container& container);

// The same as `resources == DesiredResources(container)`, without a copy.
bool IsDesired(const AppliedResources& resources, const Container& container);

// The pusher's (pusher.h) knowledge about one container, kept in its record. Only the pusher writes
// it.
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

  // Whether only a pause after refused numbers is running, for which new CPUs need not wait.
  bool NumbersWait() const { return certain && retry != nullptr && !in_flight && forwarded == 0; }
  // Whether no update is under way or to be repeated, so that a report of the runtime shows all
  // values sent.
  bool Quiet() const { return certain && !in_flight && forwarded == 0 && retry == nullptr; }
  bool Busy() const { return in_flight || forwarded > 0 || (retry != nullptr && !NumbersWait()); }
};

// Returns the runtime's report without the values of other programs that an update carried.
LinuxResources WithoutValuesOfOthers(const PushState& state, LinuxResources reported);

}  // namespace resmgr
