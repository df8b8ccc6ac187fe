// SPDX-License-Identifier: Apache-2.0
// Computes the values that a container may be sent while others are still on CPUs that it is to
// get.
#include <algorithm>
#include <utility>

#include "pkg/resmgr/pusher.h"

namespace resmgr {

// Returns the desired resources without the CPUs that others have not left yet. A container that
// does not run need not wait here: its start waits.
Pusher::Target Pusher::SafeTarget(const ContainerRecord& record) {
  Target safe{.resources = Shared(DesiredResources(record.container))};
  const AppliedResources& target = *safe.resources;
  if (!target.cpus || !record.MayRun()) return safe;
  // Hundreds of sharing containers move at once, and usually no other container is in their way.
  if (target.exclusive.empty() && leftovers_.empty()) return safe;
  const CpuSet held = HeldByOthers(record.container.key);
  if (target.exclusive.empty() && !held.Intersects(*target.cpus)) return safe;
  return ReducedTarget(record, std::move(safe.resources), held);
}

Pusher::Target Pusher::ReducedTarget(const ContainerRecord& record, SharedResources desired,
                                     const CpuSet& held) {
  const ContainerKey key = record.container.key;
  const PushState& state = *record.push;
  const CpuSet shared = *desired->cpus - desired->exclusive;
  const CpuSet too_early =
      (held & shared) | OccupiedByOthers(record, desired->exclusive - state.applied->exclusive);
  if (too_early.empty()) return {.resources = std::move(desired)};
  AppliedResources target = *desired;
  target.cpus = *target.cpus - too_early;
  target.exclusive -= too_early;
  if (target.cpus->empty()) {
    // The container stays in place and keeps its exclusive CPUs there. The known place may be one
    // that it has already left, so CPUs that others were given meanwhile are removed.
    target.cpus = state.applied->cpus;
    if (target.cpus) {
      const CpuSet rest = *target.cpus - ExclusiveOfOthers(key);
      if (!rest.empty()) target.cpus = rest;
    }
    // It shares these CPUs from now on, so it does not need them exclusively.
    target.exclusive = (state.held & target.cpus.value_or(CpuSet())) - shared;
  }
  // A container at its decided place counts as whole even if others are still there.
  const Placement& placement = record.container.placement;
  const bool whole =
      target.cpus == placement.EnforcedCpus() && target.exclusive == placement.exclusive;
  return {.resources = Shared(target), .whole = whole};
}

CpuSet Pusher::ExclusiveOfOthers(ContainerKey key) const {
  CpuSet exclusive;
  for (const auto& [other, record] : store_.containers()) {
    if (other != key && record->Placeable()) exclusive |= record->container.placement.exclusive;
  }
  return exclusive;
}

// Asked for each container that waits whenever another one has left some CPUs. Usually the
// container that was in its way still is, and on all of these CPUs: at a first start all containers
// are everywhere.
CpuSet Pusher::OccupiedByOthers(const ContainerRecord& waiting, const CpuSet& cpus) const {
  CpuSet occupied;
  if (cpus.empty()) return occupied;
  const auto& all = store_.containers();
  const auto look = [&](auto from, const auto& to) {
    for (; from != to && occupied != cpus; ++from) {
      const auto& [other, record] = *from;
      if (other == waiting.container.key || !record->MayRun()) continue;
      occupied |= ToLeave(*record, cpus);
      if (occupied == cpus) waiting.push->in_the_way = other;
    }
  };
  const auto first = std::ranges::lower_bound(all, waiting.push->in_the_way, {},
                                              &ContainerStore::Containers::value_type::first);
  look(first, all.end());
  look(all.begin(), first);
  return occupied;
}

CpuSet Pusher::HeldByOthers(ContainerKey key) const {
  CpuSet held;
  for (const ContainerKey other : leftovers_) {
    if (other == key) continue;
    const ContainerRecord* const record = Followed(other);
    if (record != nullptr && record->MayRun()) held |= LeftoverOf(*record);
  }
  return held;
}

}  // namespace resmgr
