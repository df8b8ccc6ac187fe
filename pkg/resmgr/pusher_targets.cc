// SPDX-License-Identifier: Apache-2.0
// The order of updates: the values that a container may be sent while others are still on CPUs that
// it is to get, circles of containers that wait for each other, and updates that outlive their
// containers' records.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "pkg/resmgr/pusher.h"

namespace resmgr {

// Returns the desired resources without CPUs that other containers have not left yet. A container
// that does not run gets all of them: its start waits for the others.
Pusher::Target Pusher::SafeTarget(const ContainerRecord& record) {
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

CpuSet Pusher::ExclusiveOfOthers(ContainerKey key) const {
  CpuSet exclusive = options_.claimed_by_others ? options_.claimed_by_others(key) : CpuSet();
  for (const auto& [other, record] : store_.containers()) {
    if (other != key && record->Placeable()) exclusive |= record->container.placement.exclusive;
  }
  return exclusive;
}

// Called for each waiting container whenever another one has left some CPUs. Usually the container
// found the last time (in_the_way) is still on all of these CPUs, so the search begins with it: at
// a first start all containers are on all CPUs.
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
  const auto first =
      std::ranges::lower_bound(all, waiting.push->in_the_way, {}, &ContainerStore::Entry::key);
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

// Containers that each wait for the CPUs of the next one: how the pusher finds and breaks such
// circles.

// Whether no answer is pending that would let a container go on.
bool Pusher::NothingMoves() const {
  const auto& all = store_.containers();
  return strays_.empty() && std::none_of(all.begin(), all.end(), [](const auto& entry) {
           const ContainerRecord& record = *entry.record;
           return record.push && (record.push->Busy() || record.life.BeingStarted());
         });
}

// Whether the container was sent all that it may have before others leave, and no answer is pending
// for it.
bool Pusher::WaitsIdly(const ContainerRecord& record) const {
  return record.push && !record.push->Busy() && !record.life.BeingStarted() && record.Placeable() &&
         held_back_.contains(record.container.key);
}

// Searches the containers that wait idly, which may be all of a node, for the few that are still on
// CPUs of others.
std::vector<Pusher::InTheWay> Pusher::AllInTheWay() const {
  std::vector<InTheWay> all;
  for (const ContainerKey key : held_back_) {
    const ContainerRecord* const record = Followed(key);
    if (record == nullptr || !record->MayRun() || !WaitsIdly(*record)) continue;
    InTheWay each{
        .key = key, .leaves = ToLeave(*record, everywhere_), .leftover = LeftoverOf(*record)};
    if (!each.leaves.empty() || !each.leftover.empty()) all.push_back(std::move(each));
  }
  return all;
}

std::vector<ContainerKey> Pusher::BlockersOf(const ContainerRecord& waiting,
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

// Returns containers that wait idly in a circle, each for the next one: they can only go on if the
// circle is broken. Empty if there is none.
std::set<ContainerKey> Pusher::FindCircle() const {
  const std::vector<InTheWay> in_the_way = AllInTheWay();
  std::set<ContainerKey> finished;
  for (const ContainerKey start : held_back_) {
    // The path from `start`: each container on it, with those that it waits for and that were not
    // visited yet.
    std::vector<std::pair<ContainerKey, std::vector<ContainerKey>>> way;
    const auto enter = [&](ContainerKey key) {
      const ContainerRecord* const record = Followed(key);
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

// Moves containers aside, first one, which usually lets another one go on; if that is not enough,
// twice as many each time, since at a first start a hundred may be on the CPUs of all others. False
// if none can move.
bool Pusher::MoveSomeAside(const std::set<ContainerKey>& stuck) {
  size_t moved = 0;
  bool all_asked = true;
  for (const ContainerKey key : stuck) {
    if (moved == move_aside_) break;
    if (!MoveAside(key)) continue;
    ++moved;
    // A container that already is aside gets no update, so no answer will let others go on. It only
    // gives up its exclusive CPUs, which others may wait for.
    all_asked = all_asked && Followed(key)->push->Busy();
  }
  if (moved == 0) return false;
  move_aside_ = std::max(move_aside_, 2 * moved);
  if (!all_asked) ResumeHeldBack();
  return true;
}

// Sends the first waiting container its CPUs although others are on them: called if all CPUs are
// exclusively assigned, so that none can move aside.
void Pusher::SendFirstAnyway() {
  const ContainerKey first = *held_back_.begin();
  held_back_.erase(first);
  ContainerRecord* const record = Followed(first);
  if (record == nullptr || !record->Placeable()) return;
  Send(*record, Shared(DesiredResources(record->container)));
}

// Searches for circles at intervals even while other containers move, since an update may fail for
// ever or never be answered. If no container of a circle can move aside, the moves of others may
// still free CPUs.
void Pusher::WatchForCircles() {
  if (circle_check_ != nullptr) return;
  circle_check_ = clock_.After(options_.circle_check, [this] {
    circle_check_.reset();
    (void)MoveSomeAside(FindCircle());
    if (!held_back_.empty()) WatchForCircles();
  });
}

// Moves the container to CPUs that are not exclusively assigned, until its new ones are free. False
// if it is in no other container's way, or if there are no such CPUs.
bool Pusher::MoveAside(ContainerKey key) {
  ContainerRecord* const record = Followed(key);
  if (record == nullptr || !record->Placeable()) return false;
  const CpuSet of_others = ExclusiveOfOthers(key);
  const CpuSet aside = everywhere_ - of_others - HeldByOthers(key);
  const bool in_the_way =
      record->push->possible.Intersects(of_others) || !LeftoverOf(*record).empty();
  if (aside.empty() || !in_the_way) return false;
  AppliedResources target = DesiredResources(record->container);
  target.cpus = aside;
  target.exclusive = CpuSet();
  Send(*record, Shared(target));
  return true;
}

// Updates that outlive the records of their containers. A container that has ended may come back
// and be updated again while an earlier update is still under way, which could take effect after
// the new one: so the new one waits.

void Pusher::Forget(ContainerKey key) {
  if (ContainerRecord* const record = Followed(key); record != nullptr) {
    const PushState& state = *record->push;
    if (state.in_flight || state.forwarded > 0) {
      Stray& stray = strays_[key];
      stray.own += state.in_flight ? 1 : 0;
      stray.forwarded += state.forwarded;
    }
    record->push.reset();
  }
  leftovers_.erase(key);
  held_back_.erase(key);
  ResumeHeldBack();
}

// Whether the answer belongs to an update that outlived its container's record. After the last such
// answer the container's next update is sent, which others may wait for. `kind`: updates of clients
// and our own ones are counted separately.
bool Pusher::TakeStray(ContainerKey key, int Stray::*kind) {
  if (!HasStray(key)) return false;
  const auto stray = strays_.find(key);
  if (stray->second.*kind == 0) return false;
  --(stray->second.*kind);
  if (stray->second.own == 0 && stray->second.forwarded == 0) {
    strays_.erase(stray);
    Step(key);
    ResumeHeldBack();
  }
  return true;
}

}  // namespace resmgr
