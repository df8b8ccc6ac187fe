// SPDX-License-Identifier: Apache-2.0
// The order of updates: containers that wait until others have left their CPUs, circles of them,
// and updates that outlive their containers' records.
#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "pkg/resmgr/pusher.h"

namespace resmgr {
namespace {

// The longest time between two searches for circles while other containers are being moved.
constexpr std::chrono::milliseconds kCircleCheck{1'000};

// If so many searches find the same circle, and none of its containers can move aside, one is sent
// its CPUs anyway. Each update that was under way at the first search has been answered by then, or
// has failed: runtimes have ten seconds.
constexpr int kCircleChecks = 11;

}  // namespace

void Pusher::ResumeHeldBack() {
  const std::set<ContainerKey>& held_back = handover_.held_back();
  if (held_back.empty() || !connected_) return;
  const std::set<ContainerKey> waiting = held_back;
  for (const ContainerKey key : waiting)
    Step(key);
  if (held_back.empty()) return;
  if (!NothingMoves()) return WatchForCircles();
  if (!MoveSomeAside(std::set(held_back))) SendAnyway(*held_back.begin());
}

// Containers that are held back are examined once for all answers that come together. If they were
// examined after each answer, a first start with 500 containers would take 2.8 times as much CPU
// time (FirstStartTest).
void Pusher::ResumeAfterAnswers() {
  if (sender_.AllAnswered()) return ResumeHeldBack();
  if (handover_.held_back().empty() || std::exchange(resume_posted_, true)) return;
  loop_.Post(lifetime_.Guard([this] {
    resume_posted_ = false;
    ResumeHeldBack();
  }));
}

// Whether no answer is pending that would let a container go on.
bool Pusher::NothingMoves() const {
  const auto& all = store_.containers();
  return strays_.empty() && std::none_of(all.begin(), all.end(), [](const auto& entry) {
           const ContainerRecord& record = *entry.record;
           return record.push && (record.push->Busy() || record.life.BeingStarted());
         });
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
    all_asked = all_asked && store_.FindFollowed(key)->push->Busy();
  }
  if (moved == 0) return false;
  move_aside_ = std::max(move_aside_, 2 * moved);
  if (!all_asked) ResumeHeldBack();
  return true;
}

// Sends a waiting container its CPUs although others are on them: called if all CPUs are
// exclusively assigned, so that none can move aside.
void Pusher::SendAnyway(ContainerKey waiting) {
  (void)handover_.Release(waiting);
  ContainerRecord* const record = store_.FindFollowed(waiting);
  if (record == nullptr || !record->Placeable()) return;
  Send(*record, Shared(DesiredResources(record->container)));
}

// Searches for circles at intervals even while other containers move, since an update may fail for
// ever or never be answered.
void Pusher::WatchForCircles() {
  if (circle_check_ != nullptr) return;
  circle_check_ = clock_.After(std::min(options_.last_retry, kCircleCheck), [this] {
    circle_check_.reset();
    BreakCircle(handover_.FindCircle());
    if (!handover_.held_back().empty()) WatchForCircles();
  });
}

// If no container of a circle can move aside, the moves of others may still free CPUs, but only for
// so long.
void Pusher::BreakCircle(const std::set<ContainerKey>& circle) {
  if (circle.empty() || circle != circle_) circle_seen_ = 0;
  circle_ = circle;
  if (circle.empty() || MoveSomeAside(circle)) return;
  if (++circle_seen_ < kCircleChecks) return;
  circle_seen_ = 0;
  SendAnyway(*circle.begin());
}

// Sends the container to CPUs where it is in no other's way; false if it stays.
bool Pusher::MoveAside(ContainerKey key) {
  ContainerRecord* const record = store_.FindFollowed(key);
  if (record == nullptr || !record->Placeable()) return false;
  std::optional<AppliedResources> aside = handover_.Aside(*record);
  if (!aside) return false;
  Send(*record, Shared(*std::move(aside)));
  return true;
}

// Updates that outlive the records of their containers. A container that has ended may come back
// and be updated again while an earlier update is still under way, which could take effect after
// the new one: so the new one waits.

void Pusher::Forget(ContainerKey key) {
  if (ContainerRecord* const record = store_.FindFollowed(key); record != nullptr) {
    const PushState& state = *record->push;
    if (state.UnderWay()) {
      Stray& stray = strays_[key];
      stray.own += state.in_flight ? 1 : 0;
      stray.forwarded += state.forwarded;
    }
    record->push.reset();
  }
  handover_.Forget(key);
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
