// SPDX-License-Identifier: Apache-2.0
// How containers end. Calls, lists, failed updates and newer attempts all end them by Retire().
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/resmgr/resource_manager_impl.h"

namespace resmgr {

// From here on the container has no CPUs, nothing is sent to it or saved of it, and no timer waits
// for it; but what it asked for and that a policy bound it is kept where it may be started again,
// without the place, which others may be given from now on. Returns the
// placement that it gives up, which is remembered for its next attempt; nullptr where it had none.
// To tell the policy is the caller's part.
const Placement* ResourceManager::Impl::Retire(ContainerRecord& record, LifeEvent event) {
  store_.Touch(record);
  const bool was_placeable = record.Placeable();
  record.Advance(event);
  const bool freed = LetsGo() && pusher_.Settled(record.container.key);
  pusher_.Forget(record.container.key);
  if (was_placeable) {
    record.former =
        std::make_unique<Placement>(std::exchange(record.container.placement, Placement()));
  }
  if (event == LifeEvent::kEnded && !freed && StaysBound(record)) {
    record.free_refusals = 0;
    state_writer_.EndCalls(record.container.id);
    state_writer_.MarkChanged(record);
    if (LetsGo()) FreeExitedSoon(std::chrono::milliseconds(0));
  } else {
    record.container.cpus_bound = record.container.mems_bound = false;
    state_writer_.Erase(record.container.id);
  }
  look_again_timers_.Forget(record.container.key);
  return was_placeable ? record.former.get() : nullptr;
}

void ResourceManager::Impl::Exit(ContainerRecord& record, LifeEvent event, std::string_view why,
                                 ContainerKeys& changed) {
  const Placement* const given_up = Retire(record, event);
  if (given_up == nullptr) return;
  Append(changed, decider_.Release(record.container.key));
  observers_.OnReleased(ActOn(record, why, *given_up));
}

void ResourceManager::Impl::StopPod(const PodSandboxId& id) {
  PodRecord* const pod = store_.Resolve(id);
  if (pod == nullptr) return synchronizer_.ResyncSoon();
  store_.MarkStopped(*pod);
  ContainerKeys changed;
  for (const ContainerKey key : pod->containers) {
    ContainerRecord& record = *store_.Find(key);
    // The answer to its creation decides about a container that is being created.
    if (record.life.state() != LifeState::kCreating) {
      Exit(record, LifeEvent::kEnded, "its pod was stopped", changed);
    }
  }
  Push(std::move(changed));
}

void ResourceManager::Impl::RemovePod(const PodSandboxId& id) {
  PodRecord* const pod = store_.Resolve(id);
  if (pod == nullptr) {
    synchronizer_.RecordRemoval(id);
    return synchronizer_.ResyncSoon();
  }
  ContainerKeys changed;
  const PodSandboxId whole_id = pod->pod.id;
  const std::vector<ContainerKey> containers = pod->containers;
  for (const ContainerKey key : containers) {
    ContainerRecord& record = *store_.Find(key);
    Exit(record, LifeEvent::kRemoved, "its pod was removed", changed);
    synchronizer_.RecordRemoval(record.container.id);
    observers_.OnRemoved(ActAt(record));
    store_.Erase(key);
  }
  synchronizer_.RecordRemoval(whole_id);
  store_.ErasePod(whole_id);
  state_writer_.ErasePod(whole_id);
  Push(std::move(changed));
}

void ResourceManager::Impl::Stop(const ContainerId& id) {
  ContainerRecord* const record = store_.Resolve(id);
  if (record == nullptr) return synchronizer_.ResyncSoon();
  // To stop one that does not run may mean nothing to the runtime: it can still be started.
  if (record->container.state == ContainerState::kCreated) return synchronizer_.ResyncSoon();
  End(record->container.id);
}

void ResourceManager::Impl::End(const ContainerId& id) {
  ContainerRecord* const record = store_.FindById(id);
  if (record == nullptr) return;
  ContainerKeys changed;
  Exit(*record, LifeEvent::kEnded, "it ended", changed);
  Push(std::move(changed));
}

void ResourceManager::Impl::Remove(const ContainerId& id) {
  ContainerRecord* const record = store_.Resolve(id);
  synchronizer_.RecordRemoval(record == nullptr ? id : record->container.id);
  if (record == nullptr) return synchronizer_.ResyncSoon();
  RemoveRecord(*record, "it was removed");
}

void ResourceManager::Impl::OnGone(ContainerKey key) {
  ContainerRecord* const record = store_.Find(key);
  if (record != nullptr) RemoveRecord(*record, "it is gone from the runtime");
  OnMoot();
}

void ResourceManager::Impl::RemoveRecord(ContainerRecord& record, std::string_view why) {
  ContainerKeys changed;
  Exit(record, LifeEvent::kRemoved, why, changed);
  observers_.OnRemoved(ActAt(record));
  store_.Erase(record.container.key);
  Push(std::move(changed));
}

// Ends the containers of a list: all at once, and the policy is told by the reconciliation that
// follows.
void ResourceManager::Impl::EndListed(const Adoption& adoption) {
  struct Ended {
    Pod pod;
    Container container;
    resmgr::Place from;
    std::string_view why;
  };
  std::vector<Ended> ended;
  for (const Adoption::Ended& one : adoption.ended) {
    ContainerRecord& record = *store_.Find(one.key);
    if (const Placement* const given_up = Retire(record, one.event)) {
      ended.push_back({record.pod->pod, record.container, Place::Of(*given_up), one.why});
    }
    if (one.event != LifeEvent::kRemoved) continue;
    observers_.OnRemoved(ActAt(record));
    store_.Erase(one.key);
  }
  if (ended.empty()) return;
  std::vector<Observer::Act> acts;
  for (const Ended& one : ended) {
    acts.push_back({.policy = *policy_,
                    .snapshot = store_.all(),
                    .pod = one.pod,
                    .container = one.container,
                    .why = one.why,
                    .from = one.from});
  }
  observers_.OnFoundEnded(acts);
}

// The attempt that this one takes the place of is over.
void ResourceManager::Impl::EndSuperseded(ContainerRecord& record) {
  ContainerRecord* const former = store_.Find(std::exchange(record.supersedes, {}));
  if (former == nullptr) return;
  Retire(*former, LifeEvent::kEnded);
  former->superseded = false;
  observers_.OnReleased({.policy = *policy_,
                         .snapshot = store_.all(),
                         .pod = former->pod->pod,
                         .container = former->container,
                         .why = "its next attempt took its place",
                         .from = Place::Of(former->FormerPlacement())});
}

}  // namespace resmgr
