// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/endings.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace resmgr {

// Takes the container's CPUs, pending updates, saved data and timers away. If it may be started
// again, its request and the fact that a policy bound it are kept, without the place, which others
// may get from now on. Returns the placement that it gives up, which is remembered for its next
// attempt; nullptr if it had none. The caller tells the policy.
const Placement* Endings::Retire(ContainerRecord& record, LifeEvent event) {
  brain_.store.Touch(record);
  const bool was_placeable = record.Placeable();
  record.Advance(event);
  const bool freed = brain_.LetsGo() && brain_.pusher.Settled(record.container.key);
  brain_.pusher.Forget(record.container.key);
  if (was_placeable) {
    record.former =
        std::make_unique<Placement>(std::exchange(record.container.placement, Placement()));
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

void Endings::StopPod(const PodSandboxId& id) {
  PodRecord* const pod = brain_.store.Resolve(id);
  if (pod == nullptr) return brain_.synchronizer.ResyncSoon();
  brain_.store.MarkStopped(*pod);
  ContainerKeys changed;
  for (const ContainerKey key : pod->containers) {
    ContainerRecord& record = *brain_.store.Find(key);
    // The answer to its creation decides about a container that is being created.
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
  // A stop may mean nothing to the runtime if the container does not run: it can still be started.
  if (record->container.state == ContainerState::kCreated) return brain_.synchronizer.ResyncSoon();
  End(record, "it ended");
}

void Endings::End(ContainerRecord* record, std::string_view why) {
  if (record == nullptr) return;
  ContainerKeys changed;
  Exit(*record, LifeEvent::kEnded, why, changed);
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
  Exit(record, LifeEvent::kRemoved, why, changed);
  brain_.observers.OnRemoved(brain_.ActAt(record));
  brain_.store.Erase(record.container.key);
  brain_.Push(std::move(changed));
}

void Endings::EndListed(const Adoption& adoption) {
  struct Ended {
    Pod pod;
    Container container;
    Place from;
    std::string_view why;
  };
  std::vector<Ended> ended;
  for (const Adoption::Ended& one : adoption.ended) {
    ContainerRecord& record = *brain_.store.Find(one.key);
    if (const Placement* const given_up = Retire(record, one.event)) {
      ended.push_back({record.pod->pod, record.container, Place::Of(*given_up), one.why});
    }
    if (one.event != LifeEvent::kRemoved) continue;
    brain_.observers.OnRemoved(brain_.ActAt(record));
    brain_.store.Erase(one.key);
  }
  if (ended.empty()) return;
  std::vector<Observer::Act> acts;
  for (const Ended& one : ended) {
    acts.push_back({.policy = brain_.policy(),
                    .snapshot = brain_.store.all(),
                    .pod = one.pod,
                    .container = one.container,
                    .why = one.why,
                    .from = one.from});
  }
  brain_.observers.OnFoundEnded(acts);
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

}  // namespace resmgr
