// SPDX-License-Identifier: Apache-2.0
// Containers that have exited and are started again. dockerd starts them on the CPUs that it was
// last told, which others have by then. For the same reason they are bound until dockerd is told
// otherwise, when no policy is to bind containers any more.
#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/resource_manager_impl.h"

namespace resmgr {
namespace {

// After so many refused updates of one exited container it is let go as it is. A pause follows
// each.
constexpr int kMostFreeRefusals = 5;

}  // namespace

// As at its creation, but that an update brings the place to the runtime. Its start waits for that.
Status ResourceManager::Impl::Revive(ContainerRecord& record, Refusal refusal) {
  Container former = record.container;
  former.key = store_.UnusedKey();
  former.placement = record.FormerPlacement();
  record.Advance(LifeEvent::kRevived);
  StatusOr<ContainerKeys> changed = decider_.Allocate(record, &former);
  if (!changed.ok()) {
    record.Advance(LifeEvent::kEnded);
    if (IsTentative(changed.status(), refusal)) return changed.status();
    Status told = Refuse(record, "a start", changed.status());
    if (changed.status().code() == StatusCode::kInternal) Push(decider_.Recover());
    return told;
  }
  store_.Touch(record);
  record.former.reset();
  record.started_at.reset();
  observers_.OnPlaced(ActOn(record, "it is started again"));
  pusher_.BeginCreation(record, /*carried=*/false);
  pusher_.MarkUncertain(record.container.key);
  Append(*changed, ApplyPodLimits(*record.pod));
  Push(*std::move(changed));
  return OkStatus();
}

void ResourceManager::Impl::EndRevived(ContainerRecord& record) {
  ContainerKeys changed;
  Exit(record, LifeEvent::kEnded, "it was not started again", changed);
  Push(std::move(changed));
}

bool ResourceManager::Impl::StaysBound(const ContainerRecord& record) const {
  const Container& container = record.container;
  return runtime_.StartsExited() && !record.dead && (container.cpus_bound || container.mems_bound);
}

bool ResourceManager::Impl::IsExitedBound(const ContainerRecord& record) const {
  return record.container.state == ContainerState::kExited && StaysBound(record);
}

bool ResourceManager::Impl::AnyExitedBound() const {
  return std::ranges::any_of(store_.containers(),
                             [this](const auto& entry) { return IsExitedBound(entry.second); });
}

void ResourceManager::Impl::AddExitedMoves(std::vector<Move>& moves) const {
  for (const auto& [key, record] : store_.containers()) {
    if (!IsExitedBound(record)) continue;
    const Container& container = record.container;
    Placement to;
    decider_.LiftRestrictions(container, to);
    moves.push_back({.container = FullName(record.pod->pod, container.name),
                     .from = record.FormerPlacement(),
                     .to = std::move(to)});
  }
}

void ResourceManager::Impl::FreeExitedSoon(std::chrono::milliseconds pause) {
  if (free_timer_ == nullptr) free_timer_ = timers_.After(pause, [this] { FreeExited(); });
}

void ResourceManager::Impl::FreeExited() {
  free_timer_.reset();
  if (!LetsGo()) return;
  for (const auto& [key, record] : store_.containers()) {
    if (!IsExitedBound(record)) continue;
    const Container& container = record.container;
    if (!being_freed_.insert(key).second) continue;
    Container free = container;
    free.placement = {};
    decider_.LiftRestrictions(free, free.placement);
    runtime_.UpdateContainer(
        container.id, DesiredResources(free),
        lifetime_.Guard([this, freed = key](const Status& status) { OnFreed(freed, status); }));
  }
}

void ResourceManager::Impl::OnFreed(ContainerKey key, const Status& status) {
  being_freed_.erase(key);
  ContainerRecord* const record = store_.Find(key);
  if (record == nullptr || record->container.state != ContainerState::kExited) return;
  if (!status.ok() && status.code() != StatusCode::kNotFound) {
    // A runtime that is away refuses nothing.
    if (status.code() != StatusCode::kUnavailable) ++record->free_refusals;
    if (record->free_refusals < kMostFreeRefusals) {
      log_.Info("container {} has exited and is still bound: {}; it is tried again",
                LogName(*record), Describe(status));
      return FreeExitedSoon(free_pause_);
    }
    observers_.OnFailed(ActAt(*record), status);
    log_.Warn(
        "container {} has exited, and the runtime does not let it go from CPUs {}, where it would "
        "run if it was started again: {}; what to do: remove the container, or have its cpuset "
        "changed (docker update --cpuset-cpus)",
        LogName(*record), record->FormerPlacement().cpus.value_or(CpuSet()).ToString(),
        Describe(status));
  }
  record->container.cpus_bound = record->container.mems_bound = false;
  state_writer_.Erase(record->container.id);
}

}  // namespace resmgr
