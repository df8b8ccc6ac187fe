// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/updates.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/reported_values.h"

namespace resmgr {

// Merges an update into the request, and changes the needs accordingly.
void Updates::Merge(const ContainerRecord& record, const LinuxResources& changes,
                    LinuxResources& requested, Requirements& needs) const {
  LinuxResources after = Merged(requested, changes);
  needs = NeedsAfter(needs, requested, after, record.pod->pod.qos, brain_.memory_capacity);
  requested = std::move(after);
}

StatusOr<Admission> Updates::Admit(const ContainerId& id, const LinuxResources& requested,
                                   RefusalKind refusal) {
  ContainerRecord* const record = brain_.store.Resolve(id);
  if (record == nullptr || !record->Placeable()) return Admission{};
  Container& container = record->container;
  LinuxResources merged = container.requested;
  Requirements needs = container.requirements;
  Merge(*record, requested, merged, needs);
  ConfirmedRequest before{container.requested, container.requirements, container.placement};
  StatusOr<ContainerKeys> changed = Redecide(*record, merged, needs);
  if (IsTentative(changed.status(), refusal)) return changed.status();
  if (!changed.ok()) return brain_.Refuse(*record, "an update", changed.status(), &needs);
  brain_.observers.OnUpdated(brain_.ActOn(*record, "", *before.placement));
  brain_.Append(*changed, pod_limits_.Apply(*record->pod));
  std::erase(*changed, container.key);
  const std::optional<CpuSet> cpus_before = before.placement->cpus;
  if (record->updates.empty())
    record->confirmed = std::make_unique<ConfirmedRequest>(std::move(before));
  PendingUpdate update{
      .ticket = ++last_ticket_,
      .changes = requested,
      .sent = brain_.pusher.BeginForwarded(container.key),
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
  brain_.state_writer.SaveUpdate(*record);
  brain_.Push(*std::move(changed));
  return admission;
}

// Sets the request. If no policy binds the container any more, its CPUs follow from the new
// request.
void Updates::SetRequested(Container& container, LinuxResources requested) const {
  container.requested = std::move(requested);
  if (container.placement.lifted_to)
    brain_.decider.LiftRestrictions(container, container.placement);
}

// Lets the policy decide about changed requirements. Returns the other containers that change; this
// container gets its values with the update that is being forwarded. A refusal changes nothing.
StatusOr<ContainerKeys> Updates::Redecide(ContainerRecord& record, const LinuxResources& requested,
                                          const Requirements& needs) {
  Container& container = record.container;
  if (needs == container.requirements) {
    SetRequested(container, requested);
    brain_.decider.ForgetShifts();
    return ContainerKeys();
  }
  StatusOr<ContainerKeys> changed = DecideInPod(record, requested, needs);
  if (changed.ok()) std::erase(*changed, container.key);
  if (changed.status().code() == StatusCode::kInternal) brain_.Push(brain_.decider.Recover());
  return changed;
}

// Siblings that get less come first, so that there is room for the container.
StatusOr<ContainerKeys> Updates::DecideInPod(ContainerRecord& record,
                                             const LinuxResources& requested,
                                             const Requirements& needs) {
  Transaction change(brain_.decider, /*several=*/PodLimits::Bounds(*record.pod));
  change.Note(record);
  SetRequested(record.container, requested);
  record.container.requirements = needs;
  std::vector<Shift> shifts;
  std::vector<ReducedSibling> bounded;
  RESMGR_ASSIGN_OR_RETURN(ContainerKeys changed, pod_limits_.Reduce(pod_limits_.ReducedBy(record),
                                                                    change, shifts, bounded));
  RESMGR_ASSIGN_OR_RETURN(const ContainerKeys decided, brain_.decider.Update(record));
  change.Commit();
  pod_limits_.NoteReduced(shifts, bounded);
  changed.insert(changed.end(), decided.begin(), decided.end());
  return changed;
}

void Updates::End(const Admission& admission, const ResourceValues* sent) {
  ContainerRecord* const record = brain_.store.Find(admission.key);
  if (record == nullptr) return brain_.pusher.EndForwarded(admission.key, {}, false);
  const auto update = std::find_if(
      record->updates.begin(), record->updates.end(),
      [&admission](const PendingUpdate& pending) { return pending.ticket == admission.ticket; });
  if (update == record->updates.end()) return;
  PendingUpdate ended = std::move(*update);
  record->updates.erase(update);
  brain_.store.Touch(*record);
  ContainerKeys changed;
  set_later_.NoteCalled(*record);
  if (sent != nullptr) {
    set_later_.TakeUpdate(*record, ended, *sent);
    ConfirmedRequest& confirmed = *record->confirmed;
    Merge(*record, ended.changes, confirmed.requested, confirmed.needs);
    confirmed.placement.reset();
    if (confirmed.needs == ended.needs) confirmed.placement = ended.placement;
  } else {
    record->update_failed = true;
    changed = RollBack(*record);
    brain_.Append(changed, pod_limits_.Apply(*record->pod));
  }
  if (record->updates.empty()) record->confirmed.reset();
  // Saved before the reply, so that a kill does not lose the outcome.
  brain_.state_writer.SaveUpdate(*record);
  brain_.pusher.EndForwarded(admission.key, ended.sent, sent != nullptr);
  // The container may again have a placement that the policy wants to review later.
  brain_.look_again_timers.Follow(*record);
  brain_.Push(std::move(changed));
}

// Restores the request without the failed update, and the former place if it is still free. If
// others were given its CPUs meanwhile, the policy places it anew.
ContainerKeys Updates::RollBack(ContainerRecord& record) {
  Container& container = record.container;
  LinuxResources requested = record.confirmed->requested;
  Requirements needs = record.confirmed->needs;
  for (const PendingUpdate& pending : record.updates)
    Merge(record, pending.changes, requested, needs);
  if (!record.Placeable()) {
    SetRequested(container, std::move(requested));
    container.requirements = needs;
    return {};
  }
  const std::optional<Placement>& former = record.confirmed->placement;
  const bool returns = record.updates.empty() && former &&
                       brain_.decider.MayReturn(container.key, *former, container.key);
  if (!returns) {
    StatusOr<ContainerKeys> changed = Redecide(record, requested, needs);
    if (changed.ok()) return *std::move(changed);
    brain_.log.Warn("container {} cannot get its former placement back after a failed update: {}",
                    LogName(record), Describe(changed.status()));
  }
  SetRequested(container, std::move(requested));
  container.requirements = needs;
  if (returns) {
    brain_.decider.PutBack(container, *former);
  } else if (container.placement.exclusive.empty() && !brain_.policy().KeepsPoolsApart()) {
    container.placement = {};  // its present place was decided for other needs
  }
  ContainerKeys changed;
  brain_.Append(changed, brain_.decider.Reconcile());
  brain_.ReportMoves("an update failed");
  return changed;
}

CpusetOverrides::CpusetOverrides(Metrics* metrics, bool* warned)
    : log_(GetLogger("resmgr")),
      metrics_(metrics),
      warned_(warned == nullptr ? own_warned_ : *warned) {}

void CpusetOverrides::Note(std::string_view container, std::string_view asked, const Ours& ours) {
  // An empty list in a request leaves the CPUs as they are.
  if (asked.empty() || !ours.carried) return;
  // A list that cannot be parsed is replaced, too, and counts.
  const StatusOr<CpuSet> cpus = CpuSet::Parse(asked);
  if (cpus.ok() && (*cpus == ours.before || *cpus == ours.decided || *cpus == ours.carried)) return;
  if (metrics_ != nullptr) metrics_->Count(Metrics::Event::kCpusetOverridden);
  if (warned_) {
    log_.Debug("an update asks for CPUs {} for container {}, which gets {}", Printable(asked),
               container, ours.carried->ToString());
    return;
  }
  warned_ = true;
  log_.Warn(
      "an update asks for CPUs {} for container {}, which gets {} as the policy decided: another "
      "program places containers, too. If it is the kubelet's CPU manager, set cpuManagerPolicy to "
      "none in the kubelet's configuration. Further such updates are only counted "
      "(cri_resmgr_overridden_cpusets_total)",
      Printable(asked), container, ours.carried->ToString());
}

}  // namespace resmgr
