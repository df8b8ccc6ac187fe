// SPDX-License-Identifier: Apache-2.0
// The brain's part in lists of what the runtime holds.
#include <algorithm>
#include <utility>
#include <vector>

#include "pkg/base/count_text.h"
#include "pkg/resmgr/kept_containers.h"
#include "pkg/resmgr/resource_manager_impl.h"

namespace resmgr {

Status ResourceManager::Impl::OnInventory(const RuntimeInventory& inventory,
                                          const Synchronizer::Removed& gone, bool first) {
  if (!inventory.unclear.runtimes.empty()) {
    RuntimeInventory with_kept = inventory;
    AddKept(store_, state_writer_, first, with_kept);
    return TakeOver(with_kept, gone, first);
  }
  return TakeOver(inventory, gone, first);
}

Status ResourceManager::Impl::TakeOver(const RuntimeInventory& inventory,
                                       const Synchronizer::Removed& gone, bool first) {
  const Adoption adoption =
      Adopt(store_, inventory, gone, listed_at_, memory_capacity_, state_writer_);
  for (const ContainerKey key : adoption.renamed) {
    const ContainerRecord& record = *store_.Find(key);
    observers_.OnRenamed(ActAt(record), record.CreatedName());
  }
  EndListed(adoption);
  EraseUnlistedPods(store_, inventory, listed_at_);
  ApplyPodLimitsToAdopted(adoption, first);
  StatusOr<ContainerKeys> changed = decider_.Reconcile();
  if (!changed.ok()) {
    log_.Error("cannot take over the containers of the runtime: {}", Describe(changed.status()));
    return changed.status();
  }
  // Also those that an earlier list told, for which no decision came to be.
  for (const auto& [key, record] : store_.containers()) {
    if (record.container.may_be_elsewhere) store_.Find(key)->container.may_be_elsewhere = false;
  }
  for (const ContainerKey key : adoption.first_reported)
    NoteFirstReport(*store_.Find(key));
  // By their ids from now on, whatever was kept before.
  for (const ContainerKey key : adoption.adopted)
    state_writer_.MarkChanged(*store_.Find(key));
  for (const ContainerKey key : adoption.kept_reported)
    state_writer_.MarkChanged(*store_.Find(key));
  if (inventory.unclear.why.ok() && inventory.unclear.runtimes.empty())
    state_writer_.EraseUnlistedPods();
  ReportFound(adoption);
  ConfirmInForce(adoption, first);
  if (LetsGo()) FreeExitedSoon(std::chrono::milliseconds(0));
  if (first) {
    unlisted_records_ = true;
    pusher_.Connected();
    for (const auto& [key, record] : store_.containers())
      state_writer_.MarkChanged(*store_.Find(key));
    // Calls of clients that were lost with the connection, or of a daemon before this one, may take
    // effect after this list.
    synchronizer_.ResyncSoon();
  }
  LogUnclear(inventory.unclear);
  if (adoption.classes_not_told > 0) {
    log_.Warn(
        "the runtime does not tell the cgroup parent of {}, so the QoS class is as it was saved",
        CountText(static_cast<int64_t>(adoption.classes_not_told), "pod"));
  }
  // What was kept of a container that is not taken over yet is all that will be known of it.
  if (inventory.unclear.why.ok()) {
    if (std::exchange(unlisted_records_, false)) state_writer_.EraseUnlisted();
    if (inventory.unclear.runtimes.empty()) observers_.OnListed(store_.all());
  }
  starts_.OnListed();
  changed->insert(changed->end(), adoption.start_known.begin(), adoption.start_known.end());
  Push(*std::move(changed));
  // The list may be the first to tell that a container runs.
  for (const auto& [key, record] : store_.containers())
    look_again_timers_.Follow(record);
  LogHeldCounts(first);
  return OkStatus();
}

// What the list shows to be new.
void ResourceManager::Impl::ReportFound(const Adoption& adoption) {
  std::vector<Observer::Act> adopted;
  for (const ContainerKey key : adoption.adopted)
    adopted.push_back(ActAt(*store_.Find(key)));
  if (!adopted.empty()) observers_.OnAdopted(adopted);
  // Do not report a newly adopted container as moved only because its CPUs became exclusive.
  std::vector<Shift> moves(decider_.shifts().begin(), decider_.shifts().end());
  std::erase_if(moves, [&adoption](const Shift& shift) {
    return shift.from.cpus == shift.to.cpus && shift.from.mems == shift.to.mems &&
           std::ranges::binary_search(adoption.adopted, shift.first);
  });
  ReportMoves(moves, "by what the runtime holds");
}

void ResourceManager::Impl::LogHeldCounts(bool first) {
  const std::pair held(store_.pods().size(), store_.containers().size());
  if (std::exchange(logged_counts_, held) == held && !first) return;
  log_.Info("the runtime holds {} and {}", CountText(static_cast<int64_t>(held.first), "pod"),
            CountText(static_cast<int64_t>(held.second), "container"));
}

bool ResourceManager::Impl::Knows(const Pod& listed) const {
  const auto found = store_.pods().find(listed.id);
  return found != store_.pods().end() && !found->second.unclear && !found->second.provisional;
}

// What passes by tells everything of it but how it ends.
bool ResourceManager::Impl::Knows(const RuntimeContainer& listed) const {
  const ContainerRecord* const record = store_.FindById(listed.id);
  if (record == nullptr || record->unclear) return false;
  if (record->container.state != listed.state) return false;
  if (LacksReport(*record)) return false;
  return pusher_.Follows(record->container.key) || !record->Placeable();
}

void ResourceManager::Impl::OnListFailed(const Status& status) {
  log_.Warn("cannot list the pods and containers of the runtime, retrying: {}", Describe(status));
}

void ResourceManager::Impl::LogUnclear(const RuntimeInventory::Unclear& unclear) {
  const bool told = std::exchange(unclear_logged_, !unclear.why.ok());
  if (told || unclear.why.ok()) return;
  log_.Warn(
      "the runtime does not tell the state of {} and {}: what is saved of them "
      "holds, and those without are left alone until it does: {}",
      CountText(std::ssize(unclear.pods), "pod"),
      CountText(std::ssize(unclear.containers), "container"), Describe(unclear.why));
}

void ResourceManager::Impl::ConfirmInForce(const Adoption& adoption, bool first) {
  for (const auto& [key, in_force] : adoption.in_force) {
    // Later lists are older than what the pusher knows of the containers that it follows.
    const bool reported = adoption.kept_reported.contains(key);
    if (!first && !reported && pusher_.Follows(key)) continue;
    const ContainerRecord& record = *store_.Find(key);
    if (state_writer_.IsCallOpen(StateWriter::Call::kUpdate, record.container.id)) {
      log_.Info("container {}: an update was under way, and is sent again", LogName(record));
    }
    pusher_.Confirm(key, Completed(in_force, record.container));
  }
  for (const ContainerKey key : adoption.started_unseen)
    pusher_.MarkUncertain(key);
}

}  // namespace resmgr
