// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/lists.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/amount_text.h"
#include "pkg/model/cpu_numbers.h"

namespace resmgr {
namespace {

// Forgets pod sandboxes that the list does not show, once their containers are erased.
void EraseUnlistedPods(ContainerStore& store, const RuntimeInventory& inventory, uint64_t since) {
  std::set<PodSandboxId> listed = inventory.unclear.pods;
  for (const Pod& pod : inventory.pods)
    listed.insert(pod.id);
  std::vector<PodSandboxId> absent;
  for (const auto& [id, record] : store.pods()) {
    const bool removed = !listed.contains(id) && record.touched <= since;
    if (removed && record.containers.empty()) absent.push_back(id);
  }
  for (const PodSandboxId& id : absent)
    store.ErasePod(id);
}

RuntimeContainer AsListed(std::string_view id, const SavedContainer& saved) {
  const SavedOrigin& origin = *saved.origin;
  RuntimeContainer listed;
  listed.id = ContainerId(id);
  listed.pod_id = origin.pod.id;
  listed.name = origin.container_name;
  listed.attempt = origin.attempt;
  listed.state = ContainerState::kRunning;
  listed.labels = origin.container_labels;
  if (origin.cpus) listed.resources.cpuset_cpus = origin.cpus->ToString();
  if (origin.mems) listed.resources.cpuset_mems = origin.mems->ToString();
  CopyCpuNumbers(saved.placement, listed.resources);
  listed.kept = true;
  return listed;
}

void AddNotes(const ContainerStore& store, const StateWriter& state_writer,
              RuntimeInventory& inventory) {
  std::set<PodSandboxId> added;
  state_writer.ForEach([&](std::string_view id, const SavedContainer& saved) {
    if (!saved.origin || !inventory.unclear.runtimes.contains(saved.origin->runtime)) return;
    if (store.FindById(ContainerId(id)) != nullptr) return;
    const Pod& pod = saved.origin->pod;
    if (store.pods().find(pod.id) == store.pods().end() && added.insert(pod.id).second) {
      inventory.pods.push_back(pod);
      inventory.unclear.pods.insert(pod.id);
    }
    inventory.containers.push_back(AsListed(id, saved));
    inventory.unclear.containers.insert(ContainerId(id));
  });
}

// Containers of one of several runtimes that cannot be asked when this daemon starts: an earlier
// daemon's saved data keep their CPUs, and their pods' overhead, until that runtime is listed.
// AddKept adds the saved containers of the runtimes that a list lacks (Unclear::runtimes). Such a
// container is unclear and counts as running at its saved place. `first` is true for the first list
// since a connect; later lists only keep the containers that the first one added.
void AddKept(const ContainerStore& store, const StateWriter& state_writer, bool first,
             RuntimeInventory& inventory) {
  for (const auto& [key, record] : store.containers()) {
    const Pod& pod = record->pod->pod;
    if (!record->kept || !inventory.unclear.runtimes.contains(std::string(store.RuntimeOf(pod)))) {
      continue;
    }
    inventory.unclear.containers.insert(record->container.id);
    inventory.unclear.pods.insert(pod.id);
  }
  if (first) AddNotes(store, state_writer, inventory);
}

}  // namespace

Status Lists::OnInventory(const RuntimeInventory& inventory, const Synchronizer::Removed& gone,
                          bool first) {
  if (!inventory.unclear.runtimes.empty()) {
    RuntimeInventory with_kept = inventory;
    AddKept(brain_.store, brain_.state_writer, first, with_kept);
    return TakeOver(with_kept, gone, first);
  }
  return TakeOver(inventory, gone, first);
}

Status Lists::TakeOver(const RuntimeInventory& inventory, const Synchronizer::Removed& gone,
                       bool first) {
  const Adoption adoption = Adopt(brain_.store, inventory, gone, listed_at_, brain_.memory_capacity,
                                  brain_.state_writer, brain_.decider);
  for (const ContainerKey key : adoption.renamed) {
    const ContainerRecord& record = *brain_.store.Find(key);
    brain_.observers.OnRenamed(brain_.ActAt(record), record.CreatedName());
  }
  endings_.EndListed(adoption, first);
  EraseUnlistedPods(brain_.store, inventory, listed_at_);
  creations_.Found(adoption.from_creations);
  pod_limits_.ApplyToAdopted(adoption, first);
  claims_.FindCarriers(adoption.adopted, adoption.without_notes);
  StatusOr<ContainerKeys> changed = brain_.decider.Reconcile();
  if (!changed.ok()) {
    brain_.log.Error("cannot take over the containers of the runtime: {}",
                     Describe(changed.status()));
    return changed.status();
  }
  // Also resets containers of an earlier list for which no decision could be made.
  for (const auto& [key, record] : brain_.store.containers()) {
    record->container.may_be_elsewhere = false;
  }
  for (const ContainerKey key : adoption.first_reported)
    set_later_.NoteFirstReport(*brain_.store.Find(key));
  // Creations were saved by name and attempt; from now on the containers are saved by id.
  for (const ContainerKey key : adoption.adopted)
    brain_.state_writer.MarkChanged(*brain_.store.Find(key));
  for (const ContainerKey key : adoption.kept_reported)
    brain_.state_writer.MarkChanged(*brain_.store.Find(key));
  if (inventory.unclear.why.ok() && inventory.unclear.runtimes.empty())
    brain_.state_writer.EraseUnlistedPods();
  ReportFound(adoption);
  ConfirmInForce(adoption, first);
  exited_.FreeSoon();
  if (first) FollowConnection();
  LogUnclear(inventory.unclear);
  if (adoption.classes_not_told > 0) {
    brain_.log.Warn(
        "the runtime does not tell the cgroup parent of {}, so the QoS class is as it was saved",
        CountText(static_cast<int64_t>(adoption.classes_not_told), "pod"));
  }
  // Saved data of containers that are not listed is only erased after a clear list: for a container
  // that is not taken over yet it is the only source.
  if (inventory.unclear.why.ok()) {
    if (std::exchange(unlisted_records_, false)) brain_.state_writer.EraseUnlisted();
    if (inventory.unclear.runtimes.empty()) brain_.observers.OnListed(brain_.store.all());
  }
  starts_.OnListed();
  changed->insert(changed->end(), adoption.start_known.begin(), adoption.start_known.end());
  brain_.Push(*std::move(changed));
  // The list may be the first to show that a container runs.
  for (const auto& [key, record] : brain_.store.containers())
    brain_.look_again_timers.Follow(*record);
  LogHeldCounts(first);
  return OkStatus();
}

void Lists::FollowConnection() {
  unlisted_records_ = true;
  brain_.pusher.Connected();
  for (const auto& [key, record] : brain_.store.containers())
    brain_.state_writer.MarkChanged(*record);
  // Calls that were lost with the connection, or calls of an earlier daemon, may take effect after
  // the list.
  brain_.synchronizer.ResyncSoon();
}

// Reports containers and moves that this list was the first to show.
void Lists::ReportFound(const Adoption& adoption) {
  std::vector<Observer::Act> adopted;
  for (const ContainerKey key : adoption.adopted)
    adopted.push_back(brain_.ActAt(*brain_.store.Find(key)));
  if (!adopted.empty()) brain_.observers.OnAdopted(adopted);
  // Do not report a newly adopted container as moved only because its CPUs became exclusive.
  std::vector<Shift> moves(brain_.decider.shifts().begin(), brain_.decider.shifts().end());
  std::erase_if(moves, [&adoption](const Shift& shift) {
    return shift.from.cpus == shift.to.cpus && shift.from.mems == shift.to.mems &&
           std::ranges::binary_search(adoption.adopted, shift.first);
  });
  brain_.ReportMoves(moves, "by what the runtime holds");
}

void Lists::LogHeldCounts(bool first) {
  const std::pair held(brain_.store.pods().size(), brain_.store.containers().size());
  if (std::exchange(logged_counts_, held) == held && !first) return;
  brain_.log.Info("the runtime holds {} and {}", CountText(static_cast<int64_t>(held.first), "pod"),
                  CountText(static_cast<int64_t>(held.second), "container"));
}

bool Lists::Knows(const Pod& listed) const {
  const auto found = brain_.store.pods().find(listed.id);
  return found != brain_.store.pods().end() && !found->second.unclear && !found->second.provisional;
}

// Whether the status of a listed container need not be asked for: if its state is unchanged, calls
// through the relay have reported everything else.
bool Lists::Knows(const RuntimeContainer& listed) const {
  const ContainerRecord* const record = brain_.store.FindById(listed.id);
  if (record == nullptr || record->unclear) return false;
  if (record->container.state != listed.state) return false;
  if (set_later_.LacksReport(*record)) return false;
  return brain_.pusher.Follows(record->container.key) || !record->Placeable();
}

void Lists::OnListFailed(const Status& status) {
  brain_.log.Warn("cannot list the pods and containers of the runtime, retrying: {}",
                  Describe(status));
}

void Lists::LogUnclear(const RuntimeInventory::Unclear& unclear) {
  const bool told = std::exchange(unclear_logged_, !unclear.why.ok());
  if (told || unclear.why.ok()) return;
  brain_.log.Warn(
      "the runtime does not tell the state of {} and {}: what is saved of them "
      "holds, and those without are left alone until it does: {}",
      CountText(std::ssize(unclear.pods), "pod"),
      CountText(std::ssize(unclear.containers), "container"), Describe(unclear.why));
}

void Lists::ConfirmInForce(const Adoption& adoption, bool first) {
  for (const auto& [key, in_force] : adoption.in_force) {
    // The pusher's knowledge about containers that it follows is newer than lists after the first
    // one.
    const bool reported = adoption.kept_reported.contains(key);
    if (!first && !reported && brain_.pusher.Follows(key)) continue;
    const ContainerRecord& record = *brain_.store.Find(key);
    if (brain_.state_writer.calls().Contains(OpenCalls::Kind::kUpdate, record.container.id)) {
      brain_.log.Info("container {}: an update was under way, and is sent again", LogName(record));
    }
    brain_.pusher.Confirm(key, Completed(in_force, record.container));
  }
  for (const ContainerKey key : adoption.started_unseen)
    brain_.pusher.MarkUncertain(key);
}

}  // namespace resmgr
