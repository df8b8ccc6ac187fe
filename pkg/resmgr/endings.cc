// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/endings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/resmgr/applied_resources.h"

namespace resmgr {
namespace {

// After this many refused updates an exited container stays bound as it is. A pause follows each
// refusal.
constexpr int kMostFreeRefusals = 5;

}  // namespace

// Takes the container's CPUs, pending updates, saved data and timers away. If the container may be
// started again, its request is kept, and the fact that a policy bound it, but not its place, which
// others may get from now on. Returns the placement that it gives up, which is remembered for its
// next attempt; nullptr if it had none. The caller releases its CPUs in the policy.
const Placement* Endings::Retire(ContainerRecord& record, LifeEvent event) {
  brain_.store.Touch(record);
  const bool was_placeable = record.Placeable();
  record.Advance(event);
  const bool freed = brain_.LetsGo() && brain_.pusher.Settled(record.container.key);
  brain_.pusher.Forget(record.container.key);
  if (was_placeable) {
    record.former = std::make_unique<Placement>(std::move(record.container.placement));
    record.container.placement = {};
  }
  if (event == LifeEvent::kEnded && !freed && exited_.StaysBound(record)) {
    record.free_refusals = 0;
    brain_.state_writer.EndCalls(record.container.id);
    brain_.state_writer.MarkChanged(record);
    exited_.FreeSoon();
  } else {
    record.container.cpus_bound = record.container.mems_bound = false;
    brain_.state_writer.Erase(record.container.id);
  }
  brain_.look_again_timers.Forget(record.container.key);
  return was_placeable ? record.former.get() : nullptr;
}

void Endings::Exit(ContainerRecord& record, LifeEvent event, std::string_view why,
                   ContainerKeys& changed) {
  const Placement* const given_up = Retire(record, event);
  if (given_up == nullptr) return;
  brain_.Append(changed, brain_.decider.Release(record.container.key));
  brain_.observers.OnReleased(brain_.ActOn(record, why, *given_up));
}

// As Exit, for a pod that goes on: its other containers share what the container had of the pod's
// resources.
void Endings::Leave(ContainerRecord& record, LifeEvent event, std::string_view why,
                    ContainerKeys& changed) {
  Exit(record, event, why, changed);
  brain_.Append(changed, pod_limits_.Apply(*record.pod));
}

void Endings::StopPod(const PodSandboxId& id) {
  PodRecord* const pod = brain_.store.Resolve(id);
  if (pod == nullptr) return brain_.synchronizer.ResyncSoon();
  brain_.store.SetStopped(*pod, true);
  brain_.store.Touch(*pod);
  ContainerKeys changed;
  for (const ContainerKey key : pod->containers) {
    ContainerRecord& record = *brain_.store.Find(key);
    // For a container that is being created, the answer to the creation decides.
    if (record.life.state() != LifeState::kCreating) {
      Exit(record, LifeEvent::kEnded, "its pod was stopped", changed);
    }
  }
  brain_.Push(std::move(changed));
}

void Endings::RemovePod(const PodSandboxId& id) {
  PodRecord* const pod = brain_.store.Resolve(id);
  if (pod == nullptr) {
    brain_.synchronizer.RecordRemoval(id);
    return brain_.synchronizer.ResyncSoon();
  }
  ContainerKeys changed;
  const PodSandboxId whole_id = pod->pod.id;
  const std::vector<ContainerKey> containers = pod->containers;
  for (const ContainerKey key : containers) {
    ContainerRecord& record = *brain_.store.Find(key);
    Exit(record, LifeEvent::kRemoved, "its pod was removed", changed);
    brain_.synchronizer.RecordRemoval(record.container.id);
    brain_.observers.OnRemoved(brain_.ActAt(record));
    brain_.store.Erase(key);
  }
  brain_.synchronizer.RecordRemoval(whole_id);
  brain_.store.ErasePod(whole_id);
  brain_.state_writer.ErasePod(whole_id);
  brain_.Push(std::move(changed));
}

void Endings::Stop(const ContainerId& id) {
  ContainerRecord* const record = brain_.store.Resolve(id);
  if (record == nullptr) return brain_.synchronizer.ResyncSoon();
  // A stop of a container that does not run may have no effect at the runtime: it can still be
  // started.
  if (record->container.state == ContainerState::kCreated) return brain_.synchronizer.ResyncSoon();
  End(record, "it ended");
}

void Endings::End(ContainerRecord* record, std::string_view why) {
  if (record == nullptr) return;
  ContainerKeys changed;
  Leave(*record, LifeEvent::kEnded, why, changed);
  brain_.Push(std::move(changed));
}

void Endings::Remove(const ContainerId& id) {
  ContainerRecord* const record = brain_.store.Resolve(id);
  brain_.synchronizer.RecordRemoval(record == nullptr ? id : record->container.id);
  if (record == nullptr) return brain_.synchronizer.ResyncSoon();
  Remove(*record, "it was removed");
}

void Endings::Remove(ContainerRecord& record, std::string_view why) {
  ContainerKeys changed;
  Leave(record, LifeEvent::kRemoved, why, changed);
  brain_.observers.OnRemoved(brain_.ActAt(record));
  brain_.store.Erase(record.container.key);
  brain_.Push(std::move(changed));
}

void Endings::EndListed(const Adoption& adoption, bool first) {
  struct Ended {
    const PodRecord* pod = nullptr;
    Container container;
    Place from;
    std::string_view why;
  };
  std::vector<Ended> ended;
  for (const Adoption::Ended& one : adoption.ended) {
    ContainerRecord& record = *brain_.store.Find(one.key);
    if (const Placement* const given_up = Retire(record, one.event)) {
      ended.push_back({record.pod, record.container, Place::Of(*given_up), one.why});
    }
    if (one.event != LifeEvent::kRemoved) continue;
    brain_.observers.OnRemoved(brain_.ActAt(record));
    brain_.store.Erase(one.key);
  }
  if (ended.empty()) return;
  std::vector<Observer::Act> acts;
  acts.reserve(ended.size());
  for (const Ended& one : ended) {
    acts.push_back({.policy = brain_.policy(),
                    .snapshot = brain_.store.all(),
                    .pod = one.pod->pod,
                    .container = one.container,
                    .why = one.why,
                    .from = one.from});
  }
  brain_.observers.OnFoundEnded(acts);
  for (const Ended& one : ended)
    pod_limits_.ApplyToRest(*one.pod, adoption, first);
}

void Endings::EndSuperseded(ContainerRecord& record) {
  ContainerRecord* const former = brain_.store.Find(std::exchange(record.supersedes, {}));
  if (former == nullptr) return;
  Retire(*former, LifeEvent::kEnded);
  former->superseded = false;
  Observer::Act act =
      brain_.ActOn(*former, "its next attempt took its place", former->FormerPlacement());
  act.others = {};
  brain_.observers.OnReleased(act);
}

bool ExitedContainers::StaysBound(const ContainerRecord& record) const {
  const Container& container = record.container;
  return brain_.runtime.StartsExited() && !record.dead &&
         (container.cpus_bound || container.mems_bound);
}

bool ExitedContainers::IsBound(const ContainerRecord& record) const {
  return record.container.state == ContainerState::kExited && StaysBound(record);
}

bool ExitedContainers::AnyBound() const {
  return std::ranges::any_of(brain_.store.containers(),
                             [this](const auto& entry) { return IsBound(*entry.record); });
}

void ExitedContainers::AddMoves(std::vector<PlannedMove>& moves) const {
  for (const auto& [key, record] : brain_.store.containers()) {
    if (!IsBound(*record)) continue;
    const Container& container = record->container;
    Placement to;
    brain_.decider.LiftRestrictions(container, to);
    moves.push_back({.container = FullName(record->pod->pod, container.name),
                     .from = record->FormerPlacement(),
                     .to = std::move(to)});
  }
}

void ExitedContainers::FreeAfter(std::chrono::milliseconds pause) {
  if (timer_ == nullptr && brain_.LetsGo()) timer_ = brain_.timers.After(pause, [this] { Free(); });
}

void ExitedContainers::Free() {
  timer_.reset();
  if (!brain_.LetsGo()) return;
  for (const auto& [key, record] : brain_.store.containers()) {
    if (!IsBound(*record)) continue;
    const Container& container = record->container;
    if (!being_freed_.insert(key).second) continue;
    Container free = container;
    free.placement = {};
    brain_.decider.LiftRestrictions(free, free.placement);
    brain_.runtime.UpdateContainer(
        container.id, DesiredResources(free),
        lifetime_.Guard([this, freed = key](const Status& status) { OnFreed(freed, status); }));
  }
}

void ExitedContainers::OnFreed(ContainerKey key, const Status& status) {
  being_freed_.erase(key);
  ContainerRecord* const record = brain_.store.Find(key);
  if (record == nullptr || record->container.state != ContainerState::kExited) return;
  if (!status.ok() && status.code() != StatusCode::kNotFound) {
    // The failure does not count if the runtime is not connected.
    if (status.code() != StatusCode::kUnavailable) ++record->free_refusals;
    if (record->free_refusals < kMostFreeRefusals) {
      brain_.log.Info("container {} has exited and is still bound: {}; it is tried again",
                      LogName(*record), Describe(status));
      return FreeAfter(brain_.options.last_retry);
    }
    brain_.observers.OnFailed(brain_.ActAt(*record), status);
    brain_.log.Warn(
        "container {} has exited, and the runtime does not let it go from CPUs {}, where it would "
        "run if it was started again: {}; what to do: remove the container, or have its cpuset "
        "changed (docker update --cpuset-cpus)",
        LogName(*record), record->FormerPlacement().cpus.value_or(CpuSet()).ToString(),
        Describe(status));
  }
  record->container.cpus_bound = record->container.mems_bound = false;
  brain_.state_writer.Erase(record->container.id);
}

}  // namespace resmgr
