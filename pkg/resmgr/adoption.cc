// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/adoption.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "pkg/model/cpu_numbers.h"
#include "pkg/model/requirements.h"
#include "pkg/policy/conventions.h"
#include "pkg/resmgr/reported_values.h"
#include "pkg/topology/cpu_users.h"

namespace resmgr {
namespace {

class Adopter {
 public:
  Adopter(ContainerStore& store, const Synchronizer::Removed& gone, uint64_t since,
          Bytes memory_capacity, const StateWriter& state_writer, const Decider& decider)
      : store_(store),
        gone_(gone),
        since_(since),
        memory_capacity_(memory_capacity),
        state_writer_(state_writer),
        decider_(decider) {}

  Adoption Run(const RuntimeInventory& inventory) {
    unclear_ = &inventory.unclear;
    brief_ = &inventory.brief;
    AddPods(inventory);
    FindRemovedContainers(inventory);
    FindCrowded(inventory);
    std::vector<const RuntimeContainer*> sorted;
    for (const RuntimeContainer& reported : inventory.containers)
      sorted.push_back(&reported);
    std::sort(sorted.begin(), sorted.end(),
              [](const auto* a, const auto* b) { return a->id < b->id; });
    for (const RuntimeContainer* const reported : sorted)
      Take(*reported);
    MarkExclusive();
    std::sort(result_.in_force.begin(), result_.in_force.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    return std::move(result_);
  }

 private:
  void AddPods(const RuntimeInventory& inventory) {
    for (const Pod& pod : inventory.pods) {
      if (gone_.pods.contains(pod.id)) continue;
      PodRecord* const known = store_.FindPod(pod.id);
      const bool unclear = unclear_->pods.contains(pod.id) || brief_->pods.contains(pod.id);
      if (known != nullptr) {
        known->provisional = false;
        if (!unclear && std::exchange(known->unclear, false)) {
          Pod listed = state_writer_.WithNotes(pod);
          if (listed.qos_derived) {
            listed.qos = known->pod.qos;
            listed.qos_derived = known->pod.qos_derived;
          }
          store_.PutPod(std::move(listed));
        }
      } else if (!unclear) {
        Pod listed = state_writer_.WithNotes(pod);
        if (listed.qos_derived) FillInQos(listed, inventory);
        store_.PutPod(std::move(listed));
      } else if (const std::optional<SavedContainer> kept = KeptOf(pod.id, inventory)) {
        Pod listed = state_writer_.WithNotes(pod);
        listed.qos = kept->qos;
        listed.qos_derived = kept->qos_derived;
        store_.PutPod(std::move(listed)).unclear = true;
      }
      PodRecord* const listed = store_.FindPod(pod.id);
      if (listed == nullptr) continue;
      const bool stopped = inventory.stopped_pods.contains(pod.id);
      // A list that began before a stop does not show it.
      if (stopped || listed->touched <= since_) store_.SetStopped(*listed, stopped);
    }
  }

  // Finds a saved container of a pod that is new here: the saved container has the pod's class.
  std::optional<SavedContainer> KeptOf(const PodSandboxId& id,
                                       const RuntimeInventory& inventory) const {
    for (const RuntimeContainer& reported : inventory.containers) {
      if (reported.pod_id != id) continue;
      if (std::optional<SavedContainer> saved = SavedOf(reported)) return saved;
    }
    return std::nullopt;
  }

  // The saved container by its id, or the note of a creation whose answer never came.
  std::optional<SavedContainer> SavedOf(const RuntimeContainer& reported) const {
    std::optional<SavedContainer> saved = state_writer_.Find(reported.id);
    return saved ? saved : CreationOf(reported);
  }
  std::optional<SavedContainer> CreationOf(const RuntimeContainer& reported) const {
    return state_writer_.FindCreation(reported.pod_id, reported.name, reported.attempt);
  }

  // Sets the class of a pod for which the runtime does not report it: the saved class, or else the
  // class that follows from the values in force for its containers.
  void FillInQos(Pod& pod, const RuntimeInventory& inventory) {
    if (const std::optional<SavedContainer> kept = KeptOf(pod.id, inventory)) {
      pod.qos = kept->qos;
      pod.qos_derived = kept->qos_derived;
      if (!pod.qos_derived) ++result_.classes_not_told;
      return;
    }
    std::optional<QosClass> all;
    for (const RuntimeContainer& reported : inventory.containers) {
      if (reported.pod_id != pod.id || reported.state == ContainerState::kExited) continue;
      const QosClass own = DerivedQos(reported.resources);
      all = all.value_or(own) == own ? own : QosClass::kBurstable;
    }
    pod.qos = all.value_or(QosClass::kBestEffort);
  }

  void FindRemovedContainers(const RuntimeInventory& inventory) {
    std::set<ContainerId> listed = unclear_->containers;
    for (const RuntimeContainer& reported : inventory.containers)
      listed.insert(reported.id);
    for (const auto& [key, record] : store_.containers()) {
      const bool absent = !record->container.id.empty() && !listed.contains(record->container.id);
      if (absent && record->touched <= since_) {
        result_.ended.push_back({key, LifeEvent::kRemoved, "it is gone"});
      }
    }
  }

  void FindCrowded(const RuntimeInventory& inventory) {
    CpuUsers users;
    CpuUsers certain;
    for (const RuntimeContainer& reported : inventory.containers) {
      if (reported.state == ContainerState::kExited) continue;
      const bool brief = brief_->containers.contains(reported.id);
      const ContainerRecord* const known = brief ? store_.FindById(reported.id) : nullptr;
      const CpuSet cpus = known != nullptr
                              ? known->container.placement.cpus.value_or(CpuSet())
                              : ReportedResources(reported.resources).cpus.value_or(CpuSet());
      users.Add(cpus);
      if (!MayBeElsewhere(reported.id)) certain.Add(cpus);
    }
    crowded_ = users.several;
    crowded_for_certain_ = certain.several;
  }

  // Whether a container of an earlier daemon may still be on the CPUs that it had before an update
  // that was under way. Other containers may have been given these CPUs exclusively since.
  bool MayBeElsewhere(const ContainerId& id) const {
    if (!IsUpdateOpen(id) || store_.FindById(id) != nullptr) return false;
    const std::optional<SavedContainer> saved = state_writer_.Find(id);
    return !saved || saved->placement.exclusive.empty();
  }

  void Take(const RuntimeContainer& reported) {
    if (gone_.containers.contains(reported.id)) return;
    ContainerRecord* const known = store_.FindById(reported.id);
    if (known == nullptr) {
      Add(reported);
    } else if (known->touched <= since_) {
      Refresh(*known, reported);
    }
  }

  void Refresh(ContainerRecord& record, const RuntimeContainer& reported) {
    Container& container = record.container;
    const bool was_placeable = record.Placeable();
    const bool was_created = container.state == ContainerState::kCreated;
    const bool was_being_started = record.life.BeingStarted();
    const bool not_where_reported = record.life.MayComeUpAnywhere();
    const ContainerState now = StateOf(reported);
    const bool exited = now == ContainerState::kExited;
    const bool running = now == ContainerState::kRunning;
    record.dead = reported.dead;
    // The event that reported the new name was missed.
    if (reported.name != container.name) {
      store_.Rename(record, reported.name);
      result_.renamed.push_back(container.key);
    }
    // The start under way will bring the container back, so its outcome decides.
    if (exited && record.life.ComesBack()) return;
    if (!exited) {
      record.Advance(running ? LifeEvent::kReportedRunning : LifeEvent::kReportedCreated);
    } else if (container.state != ContainerState::kExited) {
      result_.ended.push_back({container.key, LifeEvent::kEnded, "it ended"});
    }
    if (was_being_started && (exited || running)) result_.start_known.push_back(container.key);
    if (was_created && running && (!was_being_started || not_where_reported)) {
      result_.started_unseen.push_back(container.key);
    }
    if (!record.started_at) record.started_at = reported.started_at;
    if (!IsUnclear(reported)) record.unclear = false;
    if (record.kept && !exited && !IsUnclear(reported)) TakeKept(record, reported);
    if (!exited && !was_being_started && was_created == (now == ContainerState::kCreated)) {
      TakeFirstReportOf(record, reported);
    }
    // The values of a container that counted as exited are included: it has no placement, and
    // others may have its CPUs by now.
    if (exited || IsUnclear(reported) || (!was_placeable && !record.Placeable())) return;
    result_.in_force.emplace_back(container.key, ReportedResources(reported.resources));
  }

  void Add(const RuntimeContainer& reported) {
    PodRecord* const pod = store_.FindPod(reported.pod_id);
    if (pod == nullptr || BeingCreated(*pod, reported)) return;
    std::optional<SavedContainer> kept = state_writer_.Find(reported.id);
    const bool by_id = kept.has_value();
    if (!by_id) kept = CreationOf(reported);
    const SavedContainer* saved = kept ? &*kept : nullptr;
    const bool unclear = IsUnclear(reported);
    // Its requirements and CPUs are unknown, so it is left alone until a list reports them.
    if (unclear && saved == nullptr) return;
    ContainerRecord& record = store_.Add(*pod, reported.name);
    ContainerId id = reported.id;
    store_.SetId(record, id);
    Container& container = record.container;
    container.pod_id = reported.pod_id;
    container.attempt = reported.attempt;
    SetState(record, StateOf(reported));
    container.labels = reported.labels;
    container.annotations = reported.annotations;
    const Requirements in_force = ReportedNeeds(pod->pod, reported, memory_capacity_);
    if (saved == nullptr) {
      result_.without_notes.push_back(container.key);
      container.requirements = in_force;
      container.requested = ReportedRequest(reported, in_force);
    } else {
      if (!by_id) result_.from_creations.push_back(container.key);
      container.requirements = saved->requirements;
      container.requested = saved->requested;
      container.hints = saved->hints;
      container.needs_note = saved->needs_note;
      container.cpus_bound = saved->cpus_bound;
      container.mems_bound = saved->mems_bound;
      container.set_later = saved->set_later;
      RestoreTexts(record, *saved);
      TakeCreatedName(record, *saved);
    }
    const bool unsaved =
        kept && !unclear && TakeNumbers(record, reported, *kept) == SavedPlaceIs::kOfOtherNeeds;
    if (unsaved) saved = nullptr;
    AppliedResources applied = ReportedResources(reported.resources);
    if (unclear && !applied.cpus && !saved->placement.exclusive.empty()) {
      applied.cpus = saved->placement.exclusive;
    }
    record.unclear = unclear;
    record.dead = reported.dead;
    record.kept = reported.kept;
    record.started_at = reported.started_at;
    if (container.state == ContainerState::kExited) {
      Placement former = PlacementOf(applied, saved);
      if (saved != nullptr) CopyCpuNumbers(saved->placement, former);
      record.former = std::make_unique<Placement>(std::move(former));
    } else {
      SetFoundPlace(container, applied, saved);
      if (unsaved) container.placement.reason = kWasToChange;
      result_.in_force.emplace_back(container.key, applied);
      result_.adopted.push_back(container.key);
    }
  }

  void SetFoundPlace(Container& container, const AppliedResources& applied,
                     const SavedContainer* saved) const {
    container.placement = PlacementOf(applied, saved);
    const bool shares = container.placement.exclusive.empty();
    const bool was_to_be_alone = saved != nullptr && !saved->placement.exclusive.empty();
    if (shares && was_to_be_alone) container.placement.reason = kWasToChange;
    container.may_be_elsewhere = shares && IsUpdateOpen(container.id);
  }

  void TakeCreatedName(ContainerRecord& record, const SavedContainer& saved) {
    if (saved.created_name.empty() || saved.created_name == record.container.name) return;
    record.created_name = std::make_unique<std::string>(saved.created_name);
    result_.renamed.push_back(record.container.key);
  }

  // Restores the client's labels and annotations, which a stage may have changed.
  static void RestoreTexts(ContainerRecord& record, const SavedContainer& saved) {
    if (saved.texts.empty()) return;
    saved.texts.Restore(record.container.labels, record.container.annotations);
    record.texts = std::make_unique<AskedTexts>(saved.texts);
  }

  enum class SavedPlaceIs { kAsBefore, kOfUpdate, kOfOtherNeeds };

  // Takes the saved request of the container. If an update has arrived that was saved as under way,
  // its request is taken instead, and the place decided for it becomes the saved place. If one has
  // arrived that is not on the disk, the numbers in force are taken, and the saved place belongs to
  // other needs.
  SavedPlaceIs TakeNumbers(ContainerRecord& record, const RuntimeContainer& reported,
                           SavedContainer& saved) {
    Container& container = record.container;
    RuntimeContainer asked = reported;
    asked.resources = WithoutSetLater(saved, reported.resources);
    const Requirements needs = ReportedNeeds(record.pod->pod, asked, memory_capacity_);
    const bool called = IsUpdateOpen(container.id);
    const ReportOfSaved report{.saved = saved,
                               .qos = record.pod->pod.qos,
                               .in_force = reported.resources,
                               .needs_in_force = needs,
                               .crowded = crowded_,
                               .called = called,
                               .others_set = state_writer_.OthersSetNumbers()};
    const NumbersNews news = JudgeNumbers(report);
    if (saved.asked || news == NumbersNews::kUpdated) result_.resized.push_back(container.key);
    if (news == NumbersNews::kNone || news == NumbersNews::kPlugins) {
      const bool first = !saved.set_later.reported && IsPlacedAsSaved(report);
      // Skipped if an update was under way, since the container is then sent all values again.
      if (!called && (first || news == NumbersNews::kPlugins)) {
        TakeFirstReportOfSaved(reported.resources, saved.placement, container);
      }
      return SavedPlaceIs::kAsBefore;
    }
    container.set_later = {};
    if (news == NumbersNews::kAsked) {
      container.requested = saved.asked->requested;
      container.requirements = saved.asked->requirements;
      saved.requirements = saved.asked->requirements;
      saved.placement = saved.asked->place.placement;
      saved.shared_cpus = saved.asked->place.shared_cpus;
      return SavedPlaceIs::kOfUpdate;
    }
    TakeCpuInForce(asked, needs, container);
    return SavedPlaceIs::kOfOtherNeeds;
  }

  bool IsUpdateOpen(const ContainerId& id) const {
    return state_writer_.calls().Contains(OpenCalls::Kind::kUpdate, id);
  }

  // Takes the numbers to which the runtime's own plugins changed the values last sent to the
  // runtime.
  void TakeFirstReportOf(ContainerRecord& record, const RuntimeContainer& reported) {
    Container& container = record.container;
    const bool news = !container.set_later.reported && record.told_at <= since_;
    if (!news || !reported.told || IsUnclear(reported) || !record.Placeable()) return;
    if (!record.updates.empty() || !record.push || !record.push->Quiet()) return;
    if (IsUpdateOpen(container.id)) return;
    LinuxResources in_force = WithoutValuesOfOthers(*record.push, reported.resources);
    if (record.update_failed) in_force = WithoutUnnamed(std::move(in_force), container);
    TakeFirstReport(in_force, container.placement, container);
    result_.first_reported.push_back(container.key);
  }

  // The runtime reports for the first time a container that was known only from notes. A decision
  // made about it meanwhile stays, unless it was for other needs than the container has.
  void TakeKept(ContainerRecord& record, const RuntimeContainer& reported) {
    record.kept = false;
    Container& container = record.container;
    container.labels = reported.labels;
    container.annotations = reported.annotations;
    if (std::optional<SavedContainer> saved = state_writer_.Find(reported.id)) {
      RestoreTexts(record, *saved);
      const SavedPlaceIs place = TakeNumbers(record, reported, *saved);
      if (place != SavedPlaceIs::kAsBefore) {
        TakeReportedPlace(container, ReportedResources(reported.resources),
                          place == SavedPlaceIs::kOfUpdate ? &*saved : nullptr);
      }
    }
    SetCalls(record, reported.state);
    result_.kept_reported.insert(container.key);
  }

  // An update had arrived, so the container is where the runtime reports it. Its exclusive CPUs are
  // those of `saved`, unless other containers were given some of them meanwhile.
  void TakeReportedPlace(Container& container, const AppliedResources& applied,
                         const SavedContainer* saved) const {
    const CpuSet cpus = applied.cpus.value_or(CpuSet());
    if (saved != nullptr && saved->placement.exclusive.IsSubsetOf(cpus) &&
        !decider_.OthersOwn(saved->placement.exclusive, container.key)) {
      return SetFoundPlace(container, applied, saved);
    }
    // Else the reported place holds, without exclusive CPUs. But if others have CPUs of it
    // exclusively, a container that was given exclusive CPUs meanwhile keeps them.
    if (container.placement.exclusive.empty() || !decider_.OthersOwn(cpus, container.key)) {
      SetFoundPlace(container, applied, nullptr);
    }
    container.placement.reason = kWasToChange;
  }

  // Sets the state of a container that is new here, by what the runtime reports.
  void SetState(ContainerRecord& record, ContainerState reported) {
    record.Advance(LifeEvent::kCreateSucceeded);
    if (reported == ContainerState::kRunning) record.Advance(LifeEvent::kReportedRunning);
    if (reported == ContainerState::kExited) record.Advance(LifeEvent::kEnded);
    SetCalls(record, reported);
  }

  // Restores the knowledge that an earlier daemon's start of the container may still be open.
  void SetCalls(ContainerRecord& record, ContainerState reported) {
    if (reported != ContainerState::kCreated) return;
    const OpenCalls& calls = state_writer_.calls();
    const bool open = calls.Contains(OpenCalls::Kind::kStart, record.container.id);
    if (calls.complete() && !open) return;
    record.Advance(LifeEvent::kStartUnanswered);
    if (!calls.complete()) record.life.SetCpusUnknown();
  }

  // The runtime determines where the container runs; its exclusive CPUs come from the saved data,
  // unless these CPUs lie elsewhere: then the saved move never happened. If there are fewer saved
  // exclusive CPUs than the container asks for, but exactly as many CPUs as it asks for are in
  // force, the saved data are older and are ignored. They count nevertheless if they say that this
  // place is the shared CPUs, or if other containers run there.
  Placement PlacementOf(const AppliedResources& applied, const SavedContainer* saved) const {
    Placement placement;
    placement.cpus = applied.cpus;
    placement.mems = applied.mems;
    if (saved == nullptr) return placement;
    const CpuSet& exclusive = saved->placement.exclusive;
    if (!placement.cpus && !exclusive.empty()) placement.cpus = exclusive;
    if (!exclusive.IsSubsetOf(placement.cpus.value_or(CpuSet()))) return placement;
    const MilliCpu request = saved->requirements.cpu_request;
    const bool right_size = request.IsWhole() && placement.cpus &&
                            placement.cpus->size() == request.Whole() &&
                            !placement.cpus->Intersects(crowded_for_certain_);
    const bool chance = placement.cpus == saved->shared_cpus;
    if (right_size && !chance && exclusive.size() < request.Whole()) return placement;
    Placement whole = saved->placement;
    whole.cpus = placement.cpus;
    whole.mems = placement.mems;
    return whole;
  }

  void MarkExclusive() {
    CpuUsers running;
    std::set<ContainerKey> told;
    for (const Adoption::Ended& one : result_.ended)
      told.insert(one.key);
    for (const auto& [key, applied] : result_.in_force) {
      told.insert(key);
      if (Runs(key) && applied.cpus) running.Add(*applied.cpus);
    }
    for (const auto& [key, record] : store_.containers()) {
      const bool brief = brief_->containers.contains(record->container.id);
      if (!brief || told.contains(key) || !Runs(key)) continue;
      running.Add(record->container.placement.cpus.value_or(CpuSet()));
    }
    for (auto& [key, applied] : result_.in_force) {
      if (applied.cpus)
        applied.exclusive = *applied.cpus - (Runs(key) ? running.several : running.any);
    }
  }

  bool Runs(ContainerKey key) const {
    return store_.Find(key)->container.state == ContainerState::kRunning;
  }

  // Whether the list shows a container whose creation is still under way here.
  bool BeingCreated(const PodRecord& pod, const RuntimeContainer& reported) const {
    const auto attempts = pod.attempts.find(PodRecord::NameHash(reported.name));
    if (attempts == pod.attempts.end()) return false;
    return std::ranges::any_of(attempts->second, [&](ContainerKey key) {
      const Container& other = store_.Find(key)->container;
      return other.state == ContainerState::kCreating && other.name == reported.name &&
             other.attempt == reported.attempt;
    });
  }

  // Whether the runtime listed the container without its status.
  bool IsUnclear(const RuntimeContainer& reported) const {
    return unclear_->containers.contains(reported.id) || brief_->containers.contains(reported.id);
  }

  static ContainerState StateOf(const RuntimeContainer& reported) {
    return reported.state == ContainerState::kCreating ? ContainerState::kCreated : reported.state;
  }

  ContainerStore& store_;
  const Synchronizer::Removed& gone_;
  const uint64_t since_;
  const Bytes memory_capacity_;
  const StateWriter& state_writer_;
  const Decider& decider_;
  const RuntimeInventory::Unclear* unclear_ = nullptr;
  const RuntimeInventory::Brief* brief_ = nullptr;
  CpuSet crowded_;              // CPUs that two or more containers are bound to
  CpuSet crowded_for_certain_;  // as crowded_, without containers that may be elsewhere
  Adoption result_;
};

}  // namespace

Adoption Adopt(ContainerStore& store, const RuntimeInventory& inventory,
               const Synchronizer::Removed& gone, uint64_t since, Bytes memory_capacity,
               const StateWriter& state_writer, const Decider& decider) {
  return Adopter(store, gone, since, memory_capacity, state_writer, decider).Run(inventory);
}

}  // namespace resmgr
