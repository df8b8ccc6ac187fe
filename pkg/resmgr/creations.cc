// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/creations.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "pkg/model/requirements.h"

namespace resmgr {
namespace {

void FillIn(Container& container, CreateRequest&& request) {
  container.pod_id = std::move(request.pod_id);
  container.attempt = request.attempt;
  container.labels = std::move(request.labels);
  container.annotations = std::move(request.annotations);
  container.requested = std::move(request.resources);
  container.hints = std::move(request.hints);
}

// Moves the container's fields back into the request, and copies the pod's resources if the request
// had brought them.
void TakeBack(ContainerRecord& record, bool had_pod_resources, CreateRequest& request) {
  Container& container = record.container;
  if (had_pod_resources) request.pod_resources = record.pod->pod.resources;
  request.pod_id = std::move(container.pod_id);
  request.name = container.name;  // copied, since the record is found by its name
  request.labels = std::move(container.labels);
  request.annotations = std::move(container.annotations);
  request.resources = std::move(container.requested);
  request.hints = std::move(container.hints);
}

}  // namespace

StatusOr<Admission> Creations::Admit(CreateRequest&& request, RefusalKind refusal,
                                     std::vector<std::string> claims) {
  const bool has_pod_resources = request.pod_resources.has_value();
  PodRecord* const pod = PodOf(request);
  if (pod == nullptr) return Admission{.key = brain_.store.UnusedKey()};
  ContainerRecord& record = brain_.store.Add(*pod, std::move(request.name));
  Container& container = record.container;
  const bool carried = request.has_resources;
  FillIn(container, std::move(request));
  if (!claims.empty()) brain_.decider.SetClaims(container.key, std::move(claims));

  const bool falls = DeriveQos(record);
  ResolvedRequirements needs =
      ResolveRequirements(container.requested, pod->pod, brain_.memory_capacity, container.name);
  if (!needs.annotation.ok()) {
    brain_.log.Warn("container {}: {}", LogName(record), Describe(needs.annotation));
  }
  container.requirements = needs.requirements;
  container.needs_note = std::move(needs.note);
  StatusOr<ContainerKeys> changed = PlaceInPod(record, falls);
  if (!changed.ok()) {
    RestoreQos(record);
    if (IsTentative(changed.status(), refusal)) {
      TakeBack(record, has_pod_resources, request);
      Discard(record);
      return changed.status();
    }
    Status told = brain_.Refuse(record, "", changed.status());
    Discard(record);
    if (changed.status().code() == StatusCode::kInternal) brain_.Push(brain_.decider.Recover());
    return told;
  }
  brain_.observers.OnPlaced(brain_.ActOn(record));
  brain_.pusher.BeginCreation(record, carried);
  Admission admission{.key = container.key};
  if (carried) admission.adjustment = container.placement.values();
  // The container that is being created needs no update: its request carries its CPUs.
  std::erase(*changed, container.key);
  brain_.Push(*std::move(changed));
  return admission;
}

// The pod of the request, which is added if the request describes it; nullptr: the pod is unknown.
PodRecord* Creations::PodOf(CreateRequest& request) {
  PodRecord* pod = brain_.store.Resolve(request.pod_id);
  if (pod == nullptr && !request.pod) return nullptr;
  if (pod == nullptr) {
    Pod described = *std::move(request.pod);
    described.id = request.pod_id;
    pod = &brain_.store.PutPod(std::move(described));
    pod->provisional = true;
  }
  if (request.pod_resources) pod->pod.resources = *std::move(request.pod_resources);
  if (request.pod_id != pod->pod.id) request.pod_id = pod->pod.id;  // it was abbreviated
  return pod;
}

// Derives the class of a pod from its containers if no other source has it. While the pod has other
// containers the class never rises, since these were placed by the lower class. Returns whether the
// other containers lose privileges of Guaranteed pods.
bool Creations::DeriveQos(ContainerRecord& record) const {
  Pod& pod = record.pod->pod;
  if (!pod.qos_derived) return false;
  const QosClass own = DerivedQos(record.container.requested);
  if (own == pod.qos) return false;
  const bool alone = std::ranges::none_of(record.pod->containers, [&](ContainerKey key) {
    const ContainerRecord& other = *brain_.store.Find(key);
    return other.Placeable() && other.container.name != record.container.name;
  });
  record.former_qos = std::exchange(pod.qos, alone ? own : QosClass::kBurstable);
  return !alone && record.former_qos == QosClass::kGuaranteed;
}

void Creations::RestoreQos(ContainerRecord& record) {
  if (record.former_qos) record.pod->pod.qos = *std::exchange(record.former_qos, std::nullopt);
}

void Creations::KeepQos(ContainerRecord& record) {
  if (!std::exchange(record.former_qos, std::nullopt)) return;
  for (const ContainerKey other : record.pod->containers)
    brain_.state_writer.MarkChanged(*brain_.store.Find(other));
}

// Places a new container. If its siblings get less because of it, that is decided in the same
// transaction.
StatusOr<ContainerKeys> Creations::PlaceInPod(ContainerRecord& record, bool falls) {
  const PodLimits::Members siblings = pod_limits_.TakePart(record, falls);
  if (siblings.empty()) return Place(record);
  Transaction change(brain_.decider, /*several=*/true);
  std::vector<Shift> shifts;
  RESMGR_ASSIGN_OR_RETURN(ContainerKeys changed,
                          pod_limits_.Reduce(siblings, change, shifts, record.bounded));
  RESMGR_ASSIGN_OR_RETURN(const ContainerKeys placed, Place(record));
  change.Commit();
  pod_limits_.NoteReduced(shifts, record.bounded);
  changed.insert(changed.end(), placed.begin(), placed.end());
  return changed;
}

// An earlier attempt that counts as living hands its CPUs over; if it has exited, its place is only
// preferred.
StatusOr<ContainerKeys> Creations::Place(ContainerRecord& record) {
  ContainerRecord* const predecessor = FindPredecessor(record);
  if (predecessor == nullptr) return brain_.decider.Allocate(record, nullptr);
  const bool alive = predecessor->Placeable();
  Container former = predecessor->container;
  if (!alive) former.placement = predecessor->FormerPlacement();
  Transaction change(brain_.decider);
  change.Note(*predecessor);
  predecessor->superseded = alive;
  RESMGR_ASSIGN_OR_RETURN(ContainerKeys changed, brain_.decider.Allocate(record, &former));
  change.Commit();
  if (alive) {
    predecessor->former =
        std::make_unique<Placement>(std::exchange(predecessor->container.placement, {}));
    record.supersedes = predecessor->container.key;
  }
  return changed;
}

// The newest former attempt in the same sandbox.
ContainerRecord* Creations::FindPredecessor(const ContainerRecord& record) {
  // Shortcut: usually each container of the pod is the first attempt.
  if (record.pod->attempts.size() == record.pod->containers.size()) return nullptr;
  const PodRecord::Attempts& attempts =
      record.pod->attempts.find(PodRecord::NameHash(record.container.name))->second;
  for (auto key = attempts.rbegin(); key != attempts.rend(); ++key) {
    ContainerRecord* const attempt = brain_.store.Find(*key);
    // An attempt that may still start is not a predecessor, even if the kubelet counts it as dead.
    const bool former = attempt != &record && attempt->container.name == record.container.name &&
                        !attempt->superseded &&
                        attempt->container.state != ContainerState::kCreating &&
                        !attempt->life.BeingStarted();
    if (former) return attempt;
  }
  return nullptr;
}

void Creations::Succeeded(ContainerKey key, ContainerId id, const Adjustment& sent) {
  ContainerRecord* const record = brain_.store.Find(key);
  if (record == nullptr) return brain_.synchronizer.ResyncSoon();
  // The pod's id in the request may have been abbreviated, so a list is needed.
  if (record->pod->provisional) brain_.synchronizer.ResyncSoon();
  if (!brain_.store.SetId(*record, id)) {
    endings_.Remove(id);
    brain_.store.SetId(*record, id);
  }
  brain_.store.Touch(*record);
  record->Advance(LifeEvent::kCreateSucceeded);
  record->pod->provisional = false;
  record->bounded.clear();
  KeepQos(*record);
  if (record->supersedes != ContainerKey{}) endings_.EndSuperseded(*record);
  set_later_.TakeCreation(*record, sent);
  brain_.pusher.EndCreation(*record);
  brain_.state_writer.MarkChanged(*record);
}

void Creations::Failed(ContainerKey key, const Status& refusal) {
  ContainerRecord* const record = brain_.store.Find(key);
  if (record == nullptr) return;
  brain_.state_writer.EraseCreation(*record);
  End(*record, refusal);
}

void Creations::Unclear(ContainerKey key) {
  if (ContainerRecord* const record = brain_.store.Find(key)) End(*record, OkStatus());
  brain_.synchronizer.ResyncSoon();
}

void Creations::Found(const std::vector<ContainerKey>& found) {
  for (const ContainerKey key : found) {
    ContainerRecord& record = *brain_.store.Find(key);
    if (!record.Placeable()) continue;
    const bool falls = DeriveQos(record);
    KeepQos(record);
    pod_limits_.CountFound(record, falls);
  }
}

void Creations::End(ContainerRecord& record, const Status& refusal) {
  const ContainerKey key = record.container.key;
  ContainerRecord* const former = brain_.store.Find(record.supersedes);
  const Pod pod = record.pod->pod;
  Container container = record.container;
  const std::vector<ReducedSibling> bounded = std::move(record.bounded);
  RestoreQos(record);
  Discard(record);
  ContainerKeys changed;
  if (former != nullptr) former->superseded = false;
  if (former != nullptr && former->container.state != ContainerState::kExited) {
    // Without a place it is placed anew.
    Placement place = std::move(*std::exchange(former->former, nullptr));
    if (brain_.decider.MayReturn(former->container.key, place, key)) {
      former->container.placement = std::move(place);
    }
    brain_.Append(changed, brain_.decider.Reconcile());
    changed.push_back(former->container.key);
  } else {
    brain_.Append(changed, brain_.decider.Release(key));
  }
  Observer::Act act{.policy = brain_.policy(),
                    .snapshot = brain_.store.all(),
                    .pod = pod,
                    .container = container,
                    .why = refusal.ok() ? "it was not created" : "its creation was refused",
                    .from = Place::Of(container.placement),
                    .others = brain_.decider.shifts()};
  brain_.observers.OnReleased(act);
  if (!refusal.ok()) {
    container.placement = {};
    act.why = {};
    act.from = {};
    act.others = {};
    brain_.observers.OnRefusedByStage(act, refusal);
  }
  PodRecord* const rest = brain_.store.FindPod(pod.id);
  if (rest != nullptr) brain_.Append(changed, pod_limits_.Restore(*rest, bounded));
  brain_.Push(std::move(changed));
}

// Forgets a container that was never created, and its pod if the pod is known from nothing else.
void Creations::Discard(ContainerRecord& record) {
  PodRecord* const pod = record.pod;
  record.Advance(LifeEvent::kCreateFailed);
  brain_.store.Erase(record.container.key);
  if (pod->provisional && pod->containers.empty()) brain_.store.ErasePod(pod->pod.id);
}

Status Creations::Revive(ContainerRecord& record, RefusalKind refusal) {
  Container former = record.container;
  former.key = brain_.store.UnusedKey();
  former.placement = record.FormerPlacement();
  record.Advance(LifeEvent::kRevived);
  StatusOr<ContainerKeys> changed = brain_.decider.Allocate(record, &former);
  if (!changed.ok()) {
    record.Advance(LifeEvent::kEnded);
    if (IsTentative(changed.status(), refusal)) return changed.status();
    Status told = brain_.Refuse(record, "a start", changed.status());
    if (changed.status().code() == StatusCode::kInternal) brain_.Push(brain_.decider.Recover());
    return told;
  }
  brain_.store.Touch(record);
  record.former.reset();
  record.started_at.reset();
  brain_.observers.OnPlaced(brain_.ActOn(record, "it is started again"));
  brain_.pusher.BeginCreation(record, /*carried=*/false);
  brain_.pusher.MarkUncertain(record.container.key);
  brain_.Append(*changed, pod_limits_.Apply(*record.pod));
  brain_.Push(*std::move(changed));
  return OkStatus();
}

}  // namespace resmgr
