// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/exited_containers.h"

#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/resmgr/applied_resources.h"

namespace resmgr {
namespace {

// After this many refused updates an exited container stays as it is. A pause follows each.
constexpr int kMostFreeRefusals = 5;

}  // namespace

bool ExitedContainers::StaysBound(const ContainerRecord& record) const {
  const Container& container = record.container;
  return brain_.runtime.StartsExited() && !record.dead &&
         (container.cpus_bound || container.mems_bound);
}

bool ExitedContainers::IsBound(const ContainerRecord& record) const {
  return record.container.state == ContainerState::kExited && StaysBound(record);
}

bool ExitedContainers::AnyBound() const {
  return std::ranges::any_of(brain_.store.containers(),
                             [this](const auto& entry) { return IsBound(*entry.second); });
}

void ExitedContainers::AddMoves(std::vector<PlannedMove>& moves) const {
  for (const auto& [key, record] : brain_.store.containers()) {
    if (!IsBound(*record)) continue;
    const Container& container = record->container;
    Placement to;
    brain_.decider.LiftRestrictions(container, to);
    moves.push_back({.container = FullName(record->pod->pod, container.name),
                     .from = record->FormerPlacement(),
                     .to = std::move(to)});
  }
}

void ExitedContainers::FreeAfter(std::chrono::milliseconds pause) {
  if (timer_ == nullptr && brain_.LetsGo()) timer_ = brain_.timers.After(pause, [this] { Free(); });
}

void ExitedContainers::Free() {
  timer_.reset();
  if (!brain_.LetsGo()) return;
  for (const auto& [key, record] : brain_.store.containers()) {
    if (!IsBound(*record)) continue;
    const Container& container = record->container;
    if (!being_freed_.insert(key).second) continue;
    Container free = container;
    free.placement = {};
    brain_.decider.LiftRestrictions(free, free.placement);
    brain_.runtime.UpdateContainer(
        container.id, DesiredResources(free),
        lifetime_.Guard([this, freed = key](const Status& status) { OnFreed(freed, status); }));
  }
}

void ExitedContainers::OnFreed(ContainerKey key, const Status& status) {
  being_freed_.erase(key);
  ContainerRecord* const record = brain_.store.Find(key);
  if (record == nullptr || record->container.state != ContainerState::kExited) return;
  if (!status.ok() && status.code() != StatusCode::kNotFound) {
    // A runtime that is away refuses nothing.
    if (status.code() != StatusCode::kUnavailable) ++record->free_refusals;
    if (record->free_refusals < kMostFreeRefusals) {
      brain_.log.Info("container {} has exited and is still bound: {}; it is tried again",
                      LogName(*record), Describe(status));
      return FreeAfter(pause_);
    }
    brain_.observers.OnFailed(brain_.ActAt(*record), status);
    brain_.log.Warn(
        "container {} has exited, and the runtime does not let it go from CPUs {}, where it would "
        "run if it was started again: {}; what to do: remove the container, or have its cpuset "
        "changed (docker update --cpuset-cpus)",
        LogName(*record), record->FormerPlacement().cpus.value_or(CpuSet()).ToString(),
        Describe(status));
  }
  record->container.cpus_bound = record->container.mems_bound = false;
  brain_.state_writer.Erase(record->container.id);
}

}  // namespace resmgr
