// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/resource_manager_impl.h"

#include <algorithm>
#include <string>

#include "pkg/model/requirements.h"
#include "pkg/resmgr/needs.h"
#include "pkg/resmgr/reported_numbers.h"

namespace resmgr {
namespace {

// The longest pause between two lists for an unresolved start.
constexpr std::chrono::milliseconds kLongestStartPause{1'000};
constexpr std::chrono::milliseconds kCircleCheck{1'000};
// A runtime that refuses an update may have put back what it had noted before, for a moment: it is
// asked rarely where the cpuset was written past it.
constexpr int kWrittenRetries = 12;

void FillIn(Container& container, CreateRequest&& request) {
  container.pod_id = std::move(request.pod_id);
  container.attempt = request.attempt;
  container.labels = std::move(request.labels);
  container.annotations = std::move(request.annotations);
  container.requested = std::move(request.resources);
  container.hints = std::move(request.hints);
}

// The other way round.
void TakeBack(Container& container, CreateRequest& request) {
  request.pod_id = std::move(container.pod_id);
  request.name = container.name;  // by which it is still kept
  request.labels = std::move(container.labels);
  request.annotations = std::move(container.annotations);
  request.resources = std::move(container.requested);
  request.hints = std::move(container.hints);
}

}  // namespace

ResourceManager::Impl::Impl(EventLoop& loop, const Machine& machine, std::unique_ptr<Policy> policy,
                            RuntimeClient& runtime, StateStore* state, const Options& options)
    : log_(GetLogger("resmgr")),
      runtime_(runtime),
      causes_(options.causes),
      log_observer_(log_),
      metrics_observer_(options.metrics),
      limit_warnings_(options.runtimes),
      overrides_(options.metrics, options.overrides_warned),
      loop_clock_(loop),
      clock_(options.clock == nullptr ? loop_clock_ : *options.clock),
      timers_(options.timers == nullptr ? loop_clock_ : *options.timers),
      machine_(machine),
      memory_capacity_(MemoryCapacity(machine)),
      store_(options.runtimes),
      policy_(std::move(policy)),
      state_writer_(loop, state, store_, runtime.Renames()),
      decider_(machine, *policy_, store_),
      pusher_(loop, timers_, runtime, store_, state_writer_, *this, machine.online(),
              {.first_retry = options.first_retry,
               .last_retry = options.last_retry,
               .written_retry = kWrittenRetries * options.last_retry,
               .circle_check = std::min(options.last_retry, kCircleCheck),
               .others = options.others,
               .cpuset_writer = options.cpuset_writer,
               .causes = options.causes,
               .refused_updates = options.refused_updates}),
      look_again_timers_(clock_, [this](ContainerKey key) { LookAgain(key); }),
      synchronizer_(
          timers_, runtime, *this,
          {options.first_retry, options.last_retry, options.refresh_pause, options.list_period}),
      starts_(timers_, store_, pusher_, state_writer_, synchronizer_, clock_, observers_, *this,
              {options.start_timeout,
               options.start_failure,
               {options.first_retry, std::min(options.last_retry, kLongestStartPause),
                options.start_limit},
               runtime.StartsExited()}),
      events_(timers_, store_,
              {.look = [this] { synchronizer_.Refresh([](const Status&) {}); },
               .rename = [this](ContainerRecord& record,
                                const std::string& name) { Rename(record, name); }},
              {.pause = options.event_pause}),
      report_pause_(options.report_pause),
      free_pause_(options.last_retry) {
  observers_.Add(log_observer_);
  observers_.Add(metrics_observer_);
  observers_.Add(limit_warnings_);
  observers_.Add(annotation_warnings_);
  if (options.observer != nullptr) observers_.Add(*options.observer);
}

void ResourceManager::Impl::Connected() {
  Disconnected();
  synchronizer_.Connected();
}

void ResourceManager::Impl::Joined() {
  // Once more for what calls of before did meanwhile, as after a connect.
  synchronizer_.ListNow([this](const Status& status) {
    if (status.ok()) synchronizer_.ResyncSoon();
  });
}

void ResourceManager::Impl::Disconnected() {
  pusher_.Disconnected();
  starts_.RefuseAll(Unavailable("the connection to the runtime was lost"));
  synchronizer_.Disconnected();
  events_.Clear();
  // What is left of it follows after the next connect.
  if (change_) EndPolicyChange();
}

void ResourceManager::Impl::OnApplied(ContainerKey key) {
  if (ContainerRecord* const record = store_.Find(key)) {
    NoteTold(*record);
    // Else the numbers of the same update were refused, and follow.
    if (pusher_.LastError(key).ok()) observers_.OnPushed(ActAt(*record));
  } else {
    OnMoot();
  }
  starts_.ExamineWaits(key);
  ExaminePolicyChange();
}

void ResourceManager::Impl::OnInForce(const ContainerRecord& record,
                                      const AppliedResources& applied) {
  // What it is known to have for itself by a list may be by chance: no other one is there.
  const CpuSet exclusive = applied.exclusive & record.container.placement.exclusive;
  observers_.OnInForce(ActAt(record), {applied.cpus, applied.mems, exclusive});
}

StatusOr<Admission> ResourceManager::Impl::AdmitCreate(CreateRequest&& request, Refusal refusal) {
  PodRecord* pod = store_.Resolve(request.pod_id);
  if (pod == nullptr && !request.pod) return Admission{.key = store_.UnusedKey()};
  if (pod == nullptr) {
    Pod described = *std::move(request.pod);
    described.id = request.pod_id;
    pod = &store_.PutPod(std::move(described));
    pod->provisional = true;
  }
  // Taken out whole: the request may be decided again.
  if (request.pod_resources) {
    pod->pod.resources = *std::exchange(request.pod_resources, std::nullopt);
  }
  ContainerRecord& record = store_.Add(*pod, std::move(request.name));
  Container& container = record.container;
  const bool carried = request.has_resources;
  if (request.pod_id != pod->pod.id) request.pod_id = pod->pod.id;  // it came abbreviated
  FillIn(container, std::move(request));

  const bool falls = DeriveQos(record);
  ResolvedRequirements needs =
      ResolveRequirements(container.requested, pod->pod, memory_capacity_, container.name);
  if (!needs.annotation.ok()) {
    log_.Warn("container {}: {}", LogName(record), Describe(needs.annotation));
  }
  container.requirements = needs.requirements;
  container.needs_note = std::move(needs.note);
  StatusOr<ContainerKeys> changed = PlaceInPod(record, falls);
  if (!changed.ok()) RestoreQos(record);
  if (IsTentative(changed.status(), refusal)) {
    TakeBack(container, request);
    Discard(record);
    return changed.status();
  }
  if (!changed.ok()) {
    Status told = Refuse(record, "", changed.status());
    Discard(record);
    if (changed.status().code() == StatusCode::kInternal) Push(decider_.Recover());
    return told;
  }
  observers_.OnPlaced(ActOn(record));
  pusher_.BeginCreation(record, carried);
  Admission admission{.key = container.key};
  if (carried) admission.adjustment = container.placement.values();
  // It is told by the request itself.
  std::erase(*changed, container.key);
  Push(*std::move(changed));
  return admission;
}

// The newest former attempt in the same sandbox.
ContainerRecord* ResourceManager::Impl::FindPredecessor(const ContainerRecord& record) {
  // Mostly each container of the pod is the first attempt.
  if (record.pod->attempts.size() == record.pod->containers.size()) return nullptr;
  const PodRecord::Attempts& attempts =
      record.pod->attempts.find(PodRecord::NameHash(record.container.name))->second;
  for (auto key = attempts.rbegin(); key != attempts.rend(); ++key) {
    ContainerRecord* const attempt = store_.Find(*key);
    // One that may still start is not dead, whatever the kubelet believes.
    const bool former = attempt != &record && attempt->container.name == record.container.name &&
                        !attempt->superseded &&
                        attempt->container.state != ContainerState::kCreating &&
                        !attempt->life.BeingStarted();
    if (former) return attempt;
  }
  return nullptr;
}

// A predecessor that is still believed to live hands its CPUs over; one that exited only tells
// where it was.
StatusOr<ContainerKeys> ResourceManager::Impl::Place(ContainerRecord& record,
                                                     ContainerRecord* predecessor) {
  if (predecessor == nullptr) return decider_.Allocate(record, nullptr);
  const bool alive = predecessor->Placeable();
  Container former = predecessor->container;
  if (!alive) former.placement = predecessor->FormerPlacement();
  predecessor->superseded = alive;
  StatusOr<ContainerKeys> changed = decider_.Allocate(record, &former);
  if (!changed.ok()) {
    predecessor->superseded = false;
  } else if (alive) {
    predecessor->former =
        std::make_unique<Placement>(std::exchange(predecessor->container.placement, {}));
    record.supersedes = predecessor->container.key;
  }
  return changed;
}

void ResourceManager::Impl::CreateSucceeded(ContainerKey key, ContainerId id,
                                            const Adjustment& sent) {
  ContainerRecord* const record = store_.Find(key);
  if (record == nullptr) {
    synchronizer_.ResyncSoon();
    return;
  }
  // By the beginning of an id, perhaps.
  if (record->pod->provisional) synchronizer_.ResyncSoon();
  if (!store_.SetId(*record, id)) {
    Remove(id);
    store_.SetId(*record, id);
  }
  store_.Touch(*record);
  record->Advance(LifeEvent::kCreateSucceeded);
  record->pod->provisional = false;
  record->bounded.clear();
  if (std::exchange(record->former_qos, std::nullopt)) {
    for (const ContainerKey other : record->pod->containers)
      state_writer_.MarkChanged(*store_.Find(other));
  }
  if (record->supersedes != ContainerKey{}) EndSuperseded(*record);
  TakeSentCreation(*record, sent);
  pusher_.EndCreation(*record);
  state_writer_.MarkChanged(*record);
  starts_.ExamineWaits();
}

void ResourceManager::Impl::CreateFailed(ContainerKey key, const Status& refusal) {
  ContainerRecord* const record = store_.Find(key);
  if (record == nullptr) return;
  state_writer_.EraseCreation(*record);
  EndCreation(*record, refusal);
}

void ResourceManager::Impl::CreateUnclear(ContainerKey key) {
  if (ContainerRecord* const record = store_.Find(key)) EndCreation(*record, OkStatus());
  synchronizer_.ResyncSoon();
}

void ResourceManager::Impl::EndCreation(ContainerRecord& record, const Status& refusal) {
  const ContainerKey key = record.container.key;
  ContainerRecord* const former = store_.Find(record.supersedes);
  const Pod pod = record.pod->pod;
  const Container container = record.container;
  const std::vector<ReducedSibling> bounded = std::move(record.bounded);
  RestoreQos(record);
  Discard(record);
  ContainerKeys changed;
  if (former != nullptr) former->superseded = false;
  if (former != nullptr && former->container.state != ContainerState::kExited) {
    former->container.placement = std::move(*std::exchange(former->former, nullptr));
    Append(changed, decider_.Reconcile());
    changed.push_back(former->container.key);
  } else {
    Append(changed, decider_.Release(key));
  }
  observers_.OnReleased({.policy = *policy_,
                         .snapshot = store_.all(),
                         .pod = pod,
                         .container = container,
                         .why = refusal.ok() ? "it was not created" : "its creation was refused",
                         .from = Place::Of(container.placement),
                         .others = decider_.shifts()});
  if (!refusal.ok()) {
    Container refused = container;
    refused.placement = {};
    observers_.OnRefusedByStage(
        {.policy = *policy_, .snapshot = store_.all(), .pod = pod, .container = refused}, refusal);
  }
  PodRecord* const rest = bounded.empty() ? nullptr : store_.FindPod(pod.id);
  if (rest != nullptr) Append(changed, RestoreSiblings(*rest, bounded));
  Push(std::move(changed));
}

void ResourceManager::Impl::Rename(ContainerRecord& record, const std::string& name) {
  store_.Rename(record, name);
  observers_.OnRenamed(ActAt(record), record.CreatedName());
}

// Forgets a container that never came to be, and its pod if nothing else is known of that.
void ResourceManager::Impl::Discard(ContainerRecord& record) {
  PodRecord* const pod = record.pod;
  record.Advance(LifeEvent::kCreateFailed);
  store_.Erase(record.container.key);
  if (pod->provisional && pod->containers.empty()) store_.ErasePod(pod->pod.id);
}

void ResourceManager::Impl::LookAgain(ContainerKey key) {
  const ContainerRecord* const record = store_.Find(key);
  if (record == nullptr || !record->Placeable()) return;
  StatusOr<ContainerKeys> changed = decider_.LookAgain(key);
  if (!changed.ok()) {
    log_.Error("container {} keeps its placement, the policy failed to review it: {}",
               LogName(*record), Describe(changed.status()));
    Push(decider_.Recover());
    return;
  }
  ReportMoves("the policy looked at a container again");
  Push(*std::move(changed));
}

void ResourceManager::Impl::AddPod(Pod pod, const Adjustment& sent) {
  const WideAdjustment* const wide = sent.wide();
  if (wide != nullptr) {
    const AskedTexts texts = TextsBefore(sent, pod.labels, pod.annotations);
    if (wide->cgroup_parent || !texts.empty()) state_writer_.SaveAsked(pod, texts);
  }
  PodRecord& record = store_.PutPod(std::move(pod));
  record.provisional = false;
  policy_->Prepare(record.pod);
  if (ContainerKeys moved = ApplyPodLimits(record); !moved.empty()) Push(std::move(moved));
}

void ResourceManager::Impl::ChangePod(const PodSandboxId& id, const LinuxResources& overhead,
                                      const LinuxResources& resources) {
  const PodRecord* const known = store_.Resolve(id);
  if (known == nullptr) return synchronizer_.ResyncSoon();
  Pod pod = known->pod;
  pod.overhead = Merged(std::move(pod.overhead), overhead);
  pod.resources = Merged(std::move(pod.resources), resources);
  state_writer_.SaveStated(pod);
  AddPod(std::move(pod));
  // Where there are several runtimes, its overhead is kept with its containers, too.
  for (const ContainerKey key : known->containers)
    state_writer_.MarkChanged(*store_.Find(key));
  // The reply follows: a restart divides the pod's resources only among containers without notes.
  state_writer_.SaveMarked();
}

void ResourceManager::Impl::Append(ContainerKeys& changed, StatusOr<ContainerKeys> more) {
  if (!more.ok()) {
    log_.Error("the policy failed to release CPUs: {}", Describe(more.status()));
    more = decider_.Recover();
  }
  changed.insert(changed.end(), more->begin(), more->end());
}

// Brings new placements to the runtime, and lets starts go that waited for them.
void ResourceManager::Impl::Push(ContainerKeys changed) {
  if (!std::ranges::is_sorted(changed)) std::ranges::sort(changed);
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  pusher_.Wake(changed);
  for (const ContainerKey key : changed) {
    ContainerRecord* const record = store_.Find(key);
    if (record == nullptr) continue;
    NoteTold(*record);
    state_writer_.MarkChanged(*record);
    look_again_timers_.Follow(*record);
  }
  starts_.ExamineWaits();
  ExaminePolicyChange();
}

}  // namespace resmgr
