// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/handover.h"

#include <algorithm>
#include <utility>

namespace resmgr {
namespace {

// A shortcut, since the sets are usually empty.
size_t EraseFrom(std::set<ContainerKey>& keys, ContainerKey key) {
  return keys.empty() ? 0 : keys.erase(key);
}

}  // namespace

Handover::Handover(const ContainerStore& store, const CpuSet& everywhere,
                   std::function<CpuSet(ContainerKey)> claimed_by_others)
    : store_(store), everywhere_(everywhere), claimed_by_others_(std::move(claimed_by_others)) {}

Handover::Target Handover::SafeTarget(const ContainerRecord& record) const {
  SharedResources desired = Shared(DesiredResources(record.container));
  if (!desired->cpus || !record.MayRun()) return {.resources = std::move(desired)};
  const ContainerKey key = record.container.key;
  const PushState& state = *record.push;
  const CpuSet shared = *desired->cpus - desired->exclusive;
  const CpuSet too_early = (HeldByOthers(key) & shared) |
                           OccupiedByOthers(record, desired->exclusive - state.applied->exclusive);
  if (too_early.empty()) return {.resources = std::move(desired)};
  AppliedResources target = *desired;
  target.cpus = *target.cpus - too_early;
  target.exclusive -= too_early;
  if (target.cpus->empty()) {
    // Without any free CPU the container stays in place and keeps its exclusive CPUs there. The
    // applied values may be out of date, so CPUs that are exclusive to others by now are removed.
    target.cpus = state.applied->cpus;
    if (target.cpus) {
      const CpuSet rest = *target.cpus - ExclusiveOfOthers(key);
      if (!rest.empty()) target.cpus = rest;
    }
    // CPUs that it shares from now on need not be exclusive any more.
    target.exclusive = (state.held & target.cpus.value_or(CpuSet())) - shared;
  }
  // A container at its decided place counts as whole even if others are still there.
  const Placement& placement = record.container.placement;
  const bool whole =
      target.cpus == placement.EnforcedCpus() && target.exclusive == placement.exclusive;
  return {.resources = Shared(target), .whole = whole};
}

std::optional<AppliedResources> Handover::Aside(const ContainerRecord& record) const {
  const ContainerKey key = record.container.key;
  const CpuSet of_others = ExclusiveOfOthers(key);
  const CpuSet aside = everywhere_ - of_others - HeldByOthers(key);
  const bool in_the_way =
      record.push->possible.Intersects(of_others) || !LeftoverOf(record).empty();
  if (aside.empty() || !in_the_way) return std::nullopt;
  AppliedResources target = DesiredResources(record.container);
  target.cpus = aside;
  target.exclusive = CpuSet();
  return target;
}

CpuSet Handover::ToLeave(const ContainerRecord& record, const CpuSet& cpus) const {
  const std::optional<CpuSet>& desired = record.container.placement.cpus;
  if (!record.push || !desired) return CpuSet();
  const CpuSet& possible = record.life.MayComeUpAnywhere() ? everywhere_ : record.push->possible;
  CpuSet met = possible & cpus;
  if (!met.empty()) met -= *desired;
  return met;
}

CpuSet Handover::LeftoverOf(const ContainerRecord& record) {
  return record.push ? record.push->held - record.container.placement.exclusive : CpuSet();
}

void Handover::Track(const ContainerRecord& record) {
  if (record.push->held.IsSubsetOf(record.container.placement.exclusive)) {
    EraseFrom(leftovers_, record.container.key);
  } else {
    leftovers_.insert(record.container.key);
  }
}

bool Handover::Release(ContainerKey key) {
  return EraseFrom(held_back_, key) > 0;
}

void Handover::Forget(ContainerKey key) {
  EraseFrom(leftovers_, key);
  EraseFrom(held_back_, key);
}

CpuSet Handover::ExclusiveOfOthers(ContainerKey key) const {
  CpuSet exclusive = claimed_by_others_(key);
  for (const auto& [other, record] : store_.containers()) {
    if (other != key && record->Placeable()) exclusive |= record->container.placement.exclusive;
  }
  return exclusive;
}

// Called for each waiting container whenever another one has left some CPUs. Usually the container
// found the last time (in_the_way) is still on all of these CPUs, so the search begins with it: at
// a first start all containers are on all CPUs.
CpuSet Handover::OccupiedByOthers(const ContainerRecord& waiting, const CpuSet& cpus) const {
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
  const auto first =
      std::ranges::lower_bound(all, waiting.push->in_the_way, {}, &ContainerStore::Entry::key);
  look(first, all.end());
  look(all.begin(), first);
  return occupied;
}

CpuSet Handover::HeldByOthers(ContainerKey key) const {
  CpuSet held;
  for (const ContainerKey other : leftovers_) {
    if (other == key) continue;
    const ContainerRecord* const record = store_.FindFollowed(other);
    if (record != nullptr && record->MayRun()) held |= LeftoverOf(*record);
  }
  return held;
}

// Whether the container was sent all that it may have before others leave, and no answer is pending
// for it.
bool Handover::WaitsIdly(const ContainerRecord& record) const {
  return record.push && !record.push->Busy() && !record.life.BeingStarted() && record.Placeable() &&
         held_back_.contains(record.container.key);
}

// Searches the containers that wait idly, which may be all of a node, for the few that are still on
// CPUs of others.
std::vector<Handover::InTheWay> Handover::AllInTheWay() const {
  std::vector<InTheWay> all;
  for (const ContainerKey key : held_back_) {
    const ContainerRecord* const record = store_.FindFollowed(key);
    if (record != nullptr && WaitsIdly(*record)) AddIfInTheWay(*record, all);
  }
  return all;
}

void Handover::AddIfInTheWay(const ContainerRecord& record, std::vector<InTheWay>& all) const {
  if (!record.MayRun()) return;
  InTheWay each{record.container.key, ToLeave(record), LeftoverOf(record)};
  if (!each.leaves.empty() || !each.leftover.empty()) all.push_back(std::move(each));
}

std::vector<ContainerKey> Handover::BlockersOf(const ContainerRecord& waiting,
                                               const std::vector<InTheWay>& all) {
  const Placement& placement = waiting.container.placement;
  const CpuSet gained = placement.exclusive - waiting.push->applied->exclusive;
  const CpuSet shared = placement.cpus.value_or(CpuSet()) - placement.exclusive;
  std::vector<ContainerKey> blockers;
  for (const InTheWay& other : all) {
    if (other.key == waiting.container.key) continue;
    if (other.leaves.Intersects(gained) || other.leftover.Intersects(shared))
      blockers.push_back(other.key);
  }
  return blockers;
}

std::map<ContainerKey, std::vector<ContainerKey>> Handover::Waits() const {
  std::vector<InTheWay> all;
  for (const auto& [key, record] : store_.containers())
    AddIfInTheWay(*record, all);
  std::map<ContainerKey, std::vector<ContainerKey>> waits;
  for (const ContainerKey key : held_back_) {
    const ContainerRecord* const waiting = store_.FindFollowed(key);
    if (waiting == nullptr || !WaitsIdly(*waiting)) continue;
    std::vector<ContainerKey> blockers = BlockersOf(*waiting, all);
    if (!blockers.empty()) waits.emplace(key, std::move(blockers));
  }
  return waits;
}

std::set<ContainerKey> Handover::FindCircle() const {
  const std::vector<InTheWay> in_the_way = AllInTheWay();
  std::set<ContainerKey> finished;
  for (const ContainerKey start : held_back_) {
    // The path from `start`: each container on it, with those that it waits for and that were not
    // visited yet.
    std::vector<std::pair<ContainerKey, std::vector<ContainerKey>>> way;
    const auto enter = [&](ContainerKey key) {
      const ContainerRecord* const record = store_.FindFollowed(key);
      const bool waits = record != nullptr && WaitsIdly(*record);
      way.emplace_back(key, waits ? BlockersOf(*record, in_the_way) : std::vector<ContainerKey>());
    };
    if (!finished.contains(start)) enter(start);
    while (!way.empty()) {
      if (way.back().second.empty()) {
        finished.insert(way.back().first);
        way.pop_back();
        continue;
      }
      const ContainerKey next = way.back().second.back();
      way.back().second.pop_back();
      const auto met = std::ranges::find(way, next, [](const auto& step) { return step.first; });
      if (met != way.end()) {
        std::set<ContainerKey> circle;
        for (auto each = met; each != way.end(); ++each)
          circle.insert(each->first);
        return circle;
      }
      if (!finished.contains(next)) enter(next);
    }
  }
  return {};
}

}  // namespace resmgr
