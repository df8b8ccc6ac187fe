// SPDX-License-Identifier: Apache-2.0
// The kubelet's updates of containers: decided, forwarded, and taken back where the runtime refuses
// them.
#include <algorithm>
#include <utility>

#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/needs.h"
#include "pkg/resmgr/resource_manager_impl.h"

namespace resmgr {

StatusOr<Admission> ResourceManager::Impl::AdmitUpdate(const ContainerId& id,
                                                       const LinuxResources& requested,
                                                       Refusal refusal) {
  ContainerRecord* const record = store_.Resolve(id);
  if (record == nullptr || !record->Placeable()) return Admission{};
  Container& container = record->container;
  const LinuxResources merged = Merged(container.requested, requested);
  const Requirements needs = NeedsAfter(container.requirements, container.requested, merged,
                                        record->pod->pod.qos, memory_capacity_);
  ConfirmedRequest before{container.requested, container.requirements, container.placement};
  StatusOr<ContainerKeys> changed = Redecide(*record, merged, needs);
  if (IsTentative(changed.status(), refusal)) return changed.status();
  if (!changed.ok()) return Refuse(*record, "an update", changed.status());
  observers_.OnUpdated(ActOn(*record, "", *before.placement));
  const std::optional<CpuSet> cpus_before = before.placement->cpus;
  if (record->updates.empty())
    record->confirmed = std::make_unique<ConfirmedRequest>(std::move(before));
  PendingUpdate update{
      .ticket = ++last_ticket_,
      .changes = requested,
      .sent = pusher_.BeginForwarded(container.key),
      .needs = needs,
      .placement = container.placement,
  };
  ResourceValues carried = container.placement.values();
  carried.cpus = update.sent.cpus;
  const CpusetOverrides::Ours ours = {cpus_before, container.placement.cpus, carried.cpus};
  if (requested.cpuset_cpus) overrides_.Note(LogName(*record), *requested.cpuset_cpus, ours);
  Admission admission{
      .key = container.key,
      .adjustment = std::move(carried),
      .ticket = update.ticket,
  };
  record->updates.push_back(std::move(update));
  state_writer_.SaveUpdate(*record);
  Push(*std::move(changed));
  return admission;
}

// Where no policy binds it any more, its CPUs are those that it asks for.
void ResourceManager::Impl::SetRequested(Container& container, LinuxResources requested) const {
  container.requested = std::move(requested);
  if (container.placement.lifted_to) decider_.LiftRestrictions(container, container.placement);
}

// Lets the policy decide about changed requirements. Returns the other containers that change: the
// one asked about is served by the update that is being forwarded. A refusal changes nothing.
StatusOr<ContainerKeys> ResourceManager::Impl::Redecide(ContainerRecord& record,
                                                        const LinuxResources& requested,
                                                        const Requirements& needs) {
  Container& container = record.container;
  const LinuxResources requested_before = container.requested;
  SetRequested(container, requested);
  const Requirements needed_before = std::exchange(container.requirements, needs);
  if (needs == needed_before) {
    decider_.ForgetShifts();
    return ContainerKeys();
  }
  StatusOr<ContainerKeys> changed = decider_.Update(record);
  if (changed.ok()) {
    std::erase(*changed, container.key);
    return changed;
  }
  SetRequested(container, requested_before);
  container.requirements = needed_before;
  if (changed.status().code() == StatusCode::kInternal) Push(decider_.Recover());
  return changed;
}

void ResourceManager::Impl::EndUpdate(const Admission& admission, const ResourceValues* sent) {
  ContainerRecord* const record = store_.Find(admission.key);
  if (record == nullptr) return pusher_.EndForwarded(admission.key, {}, false);
  const auto update = std::find_if(
      record->updates.begin(), record->updates.end(),
      [&admission](const PendingUpdate& pending) { return pending.ticket == admission.ticket; });
  if (update == record->updates.end()) return;
  PendingUpdate ended = std::move(*update);
  record->updates.erase(update);
  store_.Touch(*record);
  ContainerKeys changed;
  NoteCalled(*record);
  if (sent != nullptr) {
    TakeSentUpdate(*record, ended, *sent);
    ConfirmedRequest& confirmed = *record->confirmed;
    LinuxResources after = Merged(confirmed.requested, ended.changes);
    confirmed.needs = NeedsAfter(confirmed.needs, confirmed.requested, after, record->pod->pod.qos,
                                 memory_capacity_);
    confirmed.requested = std::move(after);
    confirmed.placement.reset();
    if (confirmed.needs == ended.needs) confirmed.placement = ended.placement;
  } else {
    changed = RollBackUpdate(*record);
  }
  if (record->updates.empty()) record->confirmed.reset();
  // The reply follows: what it says must not be lost.
  state_writer_.SaveUpdate(*record);
  pusher_.EndForwarded(admission.key, ended.sent, sent != nullptr);
  // It may be back to a placement that the policy wanted to look at again.
  look_again_timers_.Follow(*record);
  Push(std::move(changed));
}

// Back to what is requested without the update that failed: to the very same place if that is still
// free. Others may have been given its CPUs meanwhile; then it gets what the policy has for it.
ContainerKeys ResourceManager::Impl::RollBackUpdate(ContainerRecord& record) {
  Container& container = record.container;
  LinuxResources requested = record.confirmed->requested;
  Requirements needs = record.confirmed->needs;
  for (const PendingUpdate& pending : record.updates) {
    LinuxResources after = Merged(requested, pending.changes);
    needs = NeedsAfter(needs, requested, after, record.pod->pod.qos, memory_capacity_);
    requested = std::move(after);
  }
  if (!record.Placeable()) {
    SetRequested(container, std::move(requested));
    container.requirements = needs;
    return {};
  }
  const std::optional<Placement>& former = record.confirmed->placement;
  const bool returns = record.updates.empty() && former && StillFree(record, *former);
  if (!returns) {
    StatusOr<ContainerKeys> changed = Redecide(record, requested, needs);
    if (changed.ok()) return *std::move(changed);
    log_.Warn("container {} cannot get its former placement back after a failed update: {}",
              LogName(record), Describe(changed.status()));
  }
  SetRequested(container, std::move(requested));
  container.requirements = needs;
  if (returns) {
    decider_.PutBack(container, *former);
  } else if (container.placement.exclusive.empty()) {
    container.placement = {};  // where it is, is the place of other needs
  }
  ContainerKeys changed;
  Append(changed, decider_.Reconcile());
  ReportMoves("an update failed");
  return changed;
}

// No other container was given CPUs of that placement's exclusive part meanwhile.
bool ResourceManager::Impl::StillFree(const ContainerRecord& record, const Placement& placement) {
  return !store_.OthersOwn(placement.exclusive, record.container.key);
}

}  // namespace resmgr
