// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/resmgr/brain_options.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/decider.h"
#include "pkg/resmgr/observer.h"
#include "pkg/resmgr/observers.h"
#include "pkg/resmgr/pusher.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/resmgr/state_writer.h"
#include "pkg/resmgr/synchronizer.h"
#include "pkg/resmgr/warnings.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Calls back when the policy wants to be asked again about a running container
// (Placement::look_again_after): one timer for each container. Loop's thread only.
class LookAgainTimers {
 public:
  // Runs on the loop, and never inside a call of this object.
  using Due = std::function<void(ContainerKey)>;

  // The clock must outlive it.
  LookAgainTimers(Clock& clock, Due due) : clock_(clock), due_(std::move(due)) {}

  // Starts or ends the container's timer, since its placement or state may have changed; a running
  // timer stays. The time counts from the start in the record, else from now; if it is over, the
  // container is due at once.
  void Follow(const ContainerRecord& record);
  void Forget(ContainerKey key) { timers_.erase(key); }

 private:
  Clock& clock_;
  const Due due_;
  std::map<ContainerKey, EventLoop::HandlePtr> timers_;
};

// The parts that all rules of the brain (creations.h, updates.h, ...) share. A rule changes the
// store, the decider asks the policy and writes the placements, the rule informs observers, and
// Push sends the changes to the runtime and the disk. Loop's thread only.
struct Brain {
  // `pushed` runs at the end of each Push, so that calls that wait for containers may go on.
  Brain(EventLoop& loop, const Machine& on_machine, std::unique_ptr<Policy> policy,
        RuntimeClient& the_runtime, StateStore* state, const BrainOptions& the_options,
        UpdateListener& listener, Synchronizer::Owner& owner, std::function<void()> on_pushed);
  Brain(const Brain&) = delete;
  Brain& operator=(const Brain&) = delete;

  const Policy& policy() const { return decider.policy(); }
  // Whether the policy is null, under which no container stays bound.
  bool LetsGo() const { return policy().name() == "null"; }

  // For observers: the container's present state, without moves of others.
  Observer::Act ActAt(const ContainerRecord& record, std::string_view why = {}) const {
    return {.policy = policy(),
            .snapshot = store.all(),
            .pod = record.pod->pod,
            .container = record.container,
            .why = why};
  }
  // For observers: the last decision. `from` is where the container was before.
  Observer::Act ActOn(const ContainerRecord& record, std::string_view why = {},
                      const Placement& from = {}) const;
  // Reports each move of the last decision, which was about no container in particular.
  void ReportMoves(std::string_view why) { ReportMoves(decider.shifts(), why); }
  void ReportMoves(std::span<const Shift> shifts, std::string_view why);
  // Reports the refusal, and returns the status for the kubelet. `asked` has the values of a
  // refused update, which are not in the record.
  Status Refuse(const ContainerRecord& record, std::string_view what, const Status& why,
                const Requirements* asked = nullptr);
  // The text for the kubelet: `kubectl describe pod` shows it among messages of other components,
  // so it names cri-resmgr, the shortage and the remedy.
  Status AsRefusal(const ContainerRecord& record, const Status& why) const;

  // Appends the containers that a further decision changed. If the policy failed, recovers it and
  // appends the containers of the recovery.
  void Append(ContainerKeys& changed, StatusOr<ContainerKeys> more);
  // Sends new placements to the runtime, and lets starts go that waited for them.
  void Push(ContainerKeys changed);
  // The rest of a decision that was not about one container: reports its moves, with the reason
  // `why`, and pushes them. If the policy failed, recovers it. Returns how the decision ended.
  Status CarryOut(StatusOr<ContainerKeys> changed, std::string_view why);
  // Notes that the runtime was sent values of the container, which its plugins may change: the next
  // report is the first one of these values. After a restart, a difference that appeared later
  // shows another client's update.
  void NoteTold(ContainerRecord& record);

  const BrainOptions options;
  Logger& log;
  LoopClock loop_clock;
  Clock& clock;   // for Policy::LookAgain
  Clock& timers;  // for all other waits
  RuntimeClient& runtime;
  const Machine& machine;
  const Bytes memory_capacity;
  LogObserver log_observer;
  MetricsObserver metrics_observer;
  LimitWarnings limit_warnings;
  AnnotationWarnings annotation_warnings;
  Observers observers;
  ContainerStore store;
  StateWriter state_writer;
  Decider decider;
  Pusher pusher;
  LookAgainTimers look_again_timers;
  Synchronizer synchronizer;
  const std::function<void()> pushed;

 private:
  std::string OfflineNote() const;
  Status WithWaysIn(const Pod& pod, const Container& container, const Status& why) const;
  void LookAgain(ContainerKey key);
};

}  // namespace resmgr
