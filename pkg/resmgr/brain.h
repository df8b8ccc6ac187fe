// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/resmgr/annotation_warnings.h"
#include "pkg/resmgr/brain_options.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/decider.h"
#include "pkg/resmgr/limit_warnings.h"
#include "pkg/resmgr/log_observer.h"
#include "pkg/resmgr/look_again_timers.h"
#include "pkg/resmgr/observers.h"
#include "pkg/resmgr/pusher.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/resmgr/state_writer.h"
#include "pkg/resmgr/synchronizer.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The parts that all rules of the brain (creations.h, updates.h, ...) use. A rule changes the
// store, the decider asks the policy and writes the placements, the rule tells observers, and Push
// sends the changes to the runtime and the disk. Loop's thread only.
struct Brain {
  // `pushed` runs at the end of each Push, so that calls that wait for containers may go on.
  Brain(EventLoop& loop, const Machine& on_machine, std::unique_ptr<Policy> policy,
        RuntimeClient& the_runtime, StateStore* state, const BrainOptions& options,
        Pusher::Listener& listener, Synchronizer::Owner& owner, std::function<void()> on_pushed);
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
  // refused update, which the record lacks.
  Status Refuse(const ContainerRecord& record, std::string_view what, const Status& why,
                const Requirements* asked = nullptr);
  // The text for the kubelet: `kubectl describe pod` shows it among messages of other components,
  // so it names cri-resmgr, the shortage and the remedy.
  Status AsRefusal(const ContainerRecord& record, const Status& why) const;

  // Adds the containers of a further decision or, if the policy failed, of its recovery.
  void Append(ContainerKeys& changed, StatusOr<ContainerKeys> more);
  // Sends new placements to the runtime, and lets starts go that waited for them.
  void Push(ContainerKeys changed);
  // Notes that the runtime was sent values of the container, which its plugins may change. After a
  // restart, a new difference shows another client's update.
  void NoteTold(ContainerRecord& record);

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
