// SPDX-License-Identifier: Apache-2.0
// The brain's part in lists of what the runtime holds.
#include <algorithm>
#include <utility>
#include <vector>

#include "pkg/base/count_text.h"
#include "pkg/resmgr/kept_containers.h"
#include "pkg/resmgr/resource_manager.h"

namespace resmgr {

Status ResourceManager::OnInventory(const RuntimeInventory& inventory,
                                    const Synchronizer::Removed& gone, bool first) {
  if (!inventory.unclear.runtimes.empty()) {
    RuntimeInventory with_kept = inventory;
    AddKept(brain_.store, brain_.state_writer, first, with_kept);
    return TakeOver(with_kept, gone, first);
  }
  return TakeOver(inventory, gone, first);
}

Status ResourceManager::TakeOver(const RuntimeInventory& inventory,
                                 const Synchronizer::Removed& gone, bool first) {
  const Adoption adoption =
      Adopt(brain_.store, inventory, gone, listed_at_, brain_.memory_capacity, brain_.state_writer);
  for (const ContainerKey key : adoption.renamed) {
    const ContainerRecord& record = *brain_.store.Find(key);
    brain_.observers.OnRenamed(brain_.ActAt(record), record.CreatedName());
  }
  endings_.EndListed(adoption);
  EraseUnlistedPods(brain_.store, inventory, listed_at_);
  pod_limits_.ApplyToAdopted(adoption, first);
  claims_.FindCarriers(adoption.adopted, adoption.without_notes);
  StatusOr<ContainerKeys> changed = brain_.decider.Reconcile();
  if (!changed.ok()) {
    brain_.log.Error("cannot take over the containers of the runtime: {}",
                     Describe(changed.status()));
    return changed.status();
  }
  // Includes containers of an earlier list for which no decision was made.
  for (const auto& [key, record] : brain_.store.containers()) {
    record->container.may_be_elsewhere = false;
  }
  for (const ContainerKey key : adoption.first_reported)
    set_later_.NoteFirstReport(*brain_.store.Find(key));
  // Creations are saved by name and attempt; from now on the id identifies the container.
  for (const ContainerKey key : adoption.adopted)
    brain_.state_writer.MarkChanged(*brain_.store.Find(key));
  for (const ContainerKey key : adoption.kept_reported)
    brain_.state_writer.MarkChanged(*brain_.store.Find(key));
  if (inventory.unclear.why.ok() && inventory.unclear.runtimes.empty())
    brain_.state_writer.EraseUnlistedPods();
  ReportFound(adoption);
  ConfirmInForce(adoption, first);
  exited_.FreeSoon();
  if (first) {
    unlisted_records_ = true;
    brain_.pusher.Connected();
    for (const auto& [key, record] : brain_.store.containers())
      brain_.state_writer.MarkChanged(*record);
    // Calls of clients that were lost with the connection, or of a daemon before this one, may take
    // effect after this list.
    brain_.synchronizer.ResyncSoon();
  }
  LogUnclear(inventory.unclear);
  if (adoption.classes_not_told > 0) {
    brain_.log.Warn(
        "the runtime does not tell the cgroup parent of {}, so the QoS class is as it was saved",
        CountText(static_cast<int64_t>(adoption.classes_not_told), "pod"));
  }
  // Saved data of a container that is not taken over yet is the only knowledge about it.
  if (inventory.unclear.why.ok()) {
    if (std::exchange(unlisted_records_, false)) brain_.state_writer.EraseUnlisted();
    if (inventory.unclear.runtimes.empty()) brain_.observers.OnListed(brain_.store.all());
  }
  starts_.OnListed();
  changed->insert(changed->end(), adoption.start_known.begin(), adoption.start_known.end());
  brain_.Push(*std::move(changed));
  // The list may be the first to tell that a container runs.
  for (const auto& [key, record] : brain_.store.containers())
    brain_.look_again_timers.Follow(*record);
  LogHeldCounts(first);
  return OkStatus();
}

// Reports containers and moves that the list is the first to show.
void ResourceManager::ReportFound(const Adoption& adoption) {
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

void ResourceManager::LogHeldCounts(bool first) {
  const std::pair held(brain_.store.pods().size(), brain_.store.containers().size());
  if (std::exchange(logged_counts_, held) == held && !first) return;
  brain_.log.Info("the runtime holds {} and {}", CountText(static_cast<int64_t>(held.first), "pod"),
                  CountText(static_cast<int64_t>(held.second), "container"));
}

bool ResourceManager::Knows(const Pod& listed) const {
  const auto found = brain_.store.pods().find(listed.id);
  return found != brain_.store.pods().end() && !found->second.unclear && !found->second.provisional;
}

// Calls through the relay report everything except the container's end.
bool ResourceManager::Knows(const RuntimeContainer& listed) const {
  const ContainerRecord* const record = brain_.store.FindById(listed.id);
  if (record == nullptr || record->unclear) return false;
  if (record->container.state != listed.state) return false;
  if (set_later_.LacksReport(*record)) return false;
  return brain_.pusher.Follows(record->container.key) || !record->Placeable();
}

void ResourceManager::OnListFailed(const Status& status) {
  brain_.log.Warn("cannot list the pods and containers of the runtime, retrying: {}",
                  Describe(status));
}

void ResourceManager::LogUnclear(const RuntimeInventory::Unclear& unclear) {
  const bool told = std::exchange(unclear_logged_, !unclear.why.ok());
  if (told || unclear.why.ok()) return;
  brain_.log.Warn(
      "the runtime does not tell the state of {} and {}: what is saved of them "
      "holds, and those without are left alone until it does: {}",
      CountText(std::ssize(unclear.pods), "pod"),
      CountText(std::ssize(unclear.containers), "container"), Describe(unclear.why));
}

void ResourceManager::ConfirmInForce(const Adoption& adoption, bool first) {
  for (const auto& [key, in_force] : adoption.in_force) {
    // For containers that the pusher follows, its own knowledge is newer than later lists.
    const bool reported = adoption.kept_reported.contains(key);
    if (!first && !reported && brain_.pusher.Follows(key)) continue;
    const ContainerRecord& record = *brain_.store.Find(key);
    if (brain_.state_writer.IsCallOpen(StateWriter::Call::kUpdate, record.container.id)) {
      brain_.log.Info("container {}: an update was under way, and is sent again", LogName(record));
    }
    brain_.pusher.Confirm(key, Completed(in_force, record.container));
  }
  for (const ContainerKey key : adoption.started_unseen)
    brain_.pusher.MarkUncertain(key);
}

}  // namespace resmgr
