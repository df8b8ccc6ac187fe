// SPDX-License-Identifier: Apache-2.0
// Containers that each wait for the CPUs of the next one: how the pusher finds and breaks such
// circles.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "pkg/resmgr/pusher.h"

namespace resmgr {

// Whether no answer can come that lets a container go on.
bool Pusher::NothingMoves() const {
  const auto& all = store_.containers();
  return strays_.empty() && std::none_of(all.begin(), all.end(), [](const auto& entry) {
           const ContainerRecord& record = *entry.second;
           return record.push && (record.push->Busy() || record.life.BeingStarted());
         });
}

// Whether the container was sent all that it may have before others leave, and no answer is
// pending.
bool Pusher::WaitsIdly(const ContainerRecord& record) const {
  return record.push && !record.push->Busy() && !record.life.BeingStarted() && record.Placeable() &&
         held_back_.contains(record.container.key);
}

// Searches the containers that wait idly, which may be all of a node; only few are still on CPUs of
// others.
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

// Containers that wait idly, each for the next one: nothing but to break the circle lets them go
// on. Empty where there is none.
std::set<ContainerKey> Pusher::FindCircle() const {
  const std::vector<InTheWay> in_the_way = AllInTheWay();
  std::set<ContainerKey> finished;
  for (const ContainerKey start : held_back_) {
    // The path from `start`, with the containers that each one on it waits for and that were not
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

// Moves one container aside, which usually lets another one go on; if not, twice as many the next
// time: at a first start, a hundred may be on the CPUs of all others. False where none can move.
bool Pusher::MoveSomeAside(std::set<ContainerKey> stuck) {
  size_t moved = 0;
  bool all_asked = true;
  for (const ContainerKey key : stuck) {
    if (moved == move_aside_) break;
    if (!MoveAside(key)) continue;
    ++moved;
    // A container that was there already gets no update, so no answer comes: it gave up the CPUs
    // that it still had for itself, and others may wait for these.
    all_asked = all_asked && Followed(key)->push->Busy();
  }
  if (moved == 0) return false;
  move_aside_ = std::max(move_aside_, 2 * moved);
  if (!all_asked) ResumeHeldBack();
  return true;
}

// Called when all CPUs are exclusively assigned.
void Pusher::SendFirstAnyway() {
  const ContainerKey first = *held_back_.begin();
  held_back_.erase(first);
  ContainerRecord* const record = Followed(first);
  if (record == nullptr || !record->Placeable()) return;
  Send(*record, Shared(DesiredResources(record->container)));
}

// Containers may wait for others than those that move now: an update may fail for ever, or never be
// answered. Where none can move aside, those that move now may still leave them CPUs to move to.
void Pusher::WatchForCircles() {
  if (circle_check_ != nullptr) return;
  circle_check_ = clock_.After(options_.circle_check, [this] {
    circle_check_.reset();
    (void)MoveSomeAside(FindCircle());
    if (!held_back_.empty()) WatchForCircles();
  });
}

// Moves the container to CPUs that are not exclusively assigned, until its new ones are free. False
// where it blocks no other container, or where there are no such CPUs.
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

}  // namespace resmgr
