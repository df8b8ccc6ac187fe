// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/pusher.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace resmgr {

Pusher::Pusher(EventLoop& loop, RuntimeClient& runtime, const ContainerStore& store, Keeper& keeper,
               Listener& listener, CpuSet everywhere, Options options)
    : loop_(loop),
      runtime_(runtime),
      store_(store),
      keeper_(keeper),
      listener_(listener),
      everywhere_(everywhere),
      options_(options),
      self_(std::make_shared<Pusher*>(this)) {}

void Pusher::Connected() {
  connected_ = true;
  std::vector<ContainerKey> keys;
  for (const auto& [key, state] : states_)
    keys.push_back(key);
  for (const ContainerKey key : keys)
    Step(key);
  ResumeHeldBack();
}

void Pusher::Disconnected() {
  connected_ = false;
  ++epoch_;
  for (auto& [key, state] : states_) {
    state.certain = false;
    state.in_flight = false;
    state.retry.reset();
    state.delay = std::chrono::milliseconds(0);
  }
}

void Pusher::Confirm(ContainerKey key, const Effect& applied) {
  const size_t known = states_.size();
  // Mostly the newest container.
  State& state = states_.try_emplace(states_.end(), key)->second;
  const bool is_new = states_.size() > known;
  last_found_ = {key, &state};
  const ContainerRecord* const record = store_.Find(key);
  const bool open =
      record != nullptr && keeper_.IsOpen(Keeper::Call::kUpdate, record->container.id);
  // What it had for itself before a reconnect, and still sits on, others must not enter yet.
  const CpuSet still_held = open ? state.held : state.held & applied.cpus.value_or(CpuSet());
  const CpuSet still_possible = is_new ? everywhere_ : state.possible;
  Record(state, applied);
  state.held |= still_held;
  if (open) {
    state.certain = false;
    state.possible |= still_possible;
  }
  state.overlapped = state.in_flight || state.forwarded > 0;
  TrackLeftover(key);
  Step(key);
  ResumeHeldBack();
}

void Pusher::Distrust(ContainerKey key) {
  State* const state = FindState(key);
  if (state == nullptr) return;
  state->certain = false;
  state->possible = everywhere_;
  if (state->in_flight || state->forwarded > 0) state->overlapped = true;
  Step(key);
}

void Pusher::MeetStart(ContainerKey key) {
  State* const state = FindState(key);
  if (state != nullptr && (state->in_flight || state->forwarded > 0)) state->overlapped = true;
}

void Pusher::Forget(ContainerKey key) {
  if (states_.erase(key) == 0) return;
  last_found_ = {};
  leftovers_.erase(key);
  held_back_.erase(key);
  ResumeHeldBack();
}

void Pusher::Wake(const std::vector<ContainerKey>& keys) {
  // First of all of them, so that the first one enters nothing that another one still holds.
  for (const ContainerKey key : keys)
    TrackLeftover(key);
  for (const ContainerKey key : keys)
    Step(key);
  ResumeHeldBack();
}

Effect Pusher::BeginForwarded(ContainerKey key) {
  const ContainerRecord* const record = store_.Find(key);
  State& state = states_[key];
  Effect target = Safe(*record, state);
  if (state.in_flight || state.forwarded > 0 || record->BeingStarted()) state.overlapped = true;
  // The request carries what is wanted, a new try of the same would only disturb it.
  state.retry.reset();
  ++state.forwarded;
  state.possible |= target.cpus.value_or(everywhere_);
  state.held |= target.exclusive;
  TrackLeftover(key);
  TrackCall(key, state);
  return target;
}

void Pusher::EndForwarded(ContainerKey key, const Effect& sent, bool applied) {
  State* const state = FindState(key);
  if (state == nullptr || state->forwarded == 0) return;
  --state->forwarded;
  if (applied && !state->overlapped) {
    Record(*state, sent);
  } else {
    state->certain = false;
  }
  if (!state->in_flight && state->forwarded == 0) state->overlapped = false;
  TrackLeftover(key);
  TrackCall(key, *state);
  Step(key);
  ResumeHeldBack();
}

bool Pusher::Settled(ContainerKey key) const {
  const State* const state = FindState(key);
  const ContainerRecord* const record = store_.Find(key);
  if (state == nullptr || record == nullptr) return false;
  if (!state->certain || state->in_flight || state->forwarded > 0) return false;
  const Effect desired = DesiredEffect(record->container);
  return Difference(desired, state->applied).empty();
}

CpuSet Pusher::Possible(ContainerKey key) const {
  const State* const state = FindState(key);
  const ContainerRecord* const record = store_.Find(key);
  if (state == nullptr || record == nullptr) return {};
  return PossibleOf(*record, *state);
}

const CpuSet& Pusher::PossibleOf(const ContainerRecord& record, const State& state) const {
  return record.MayComeUpAnywhere() ? everywhere_ : state.possible;
}

CpuSet Pusher::Leftover(ContainerKey key) const {
  const State* const state = FindState(key);
  const ContainerRecord* const record = store_.Find(key);
  if (state == nullptr || record == nullptr) return {};
  return state->held - record->container.placement.exclusive;
}

Status Pusher::LastError(ContainerKey key) const {
  const State* const state = FindState(key);
  return state == nullptr ? OkStatus() : state->last_error;
}

Pusher::State* Pusher::FindState(ContainerKey key) {
  if (last_found_.first == key && last_found_.second != nullptr) return last_found_.second;
  const auto found = states_.find(key);
  if (found == states_.end()) return nullptr;
  last_found_ = {key, &found->second};
  return &found->second;
}

const Pusher::State* Pusher::FindState(ContainerKey key) const {
  if (last_found_.first == key && last_found_.second != nullptr) return last_found_.second;
  const auto found = states_.find(key);
  return found == states_.end() ? nullptr : &found->second;
}

// Sends what is missing now, if anything is and if it may be sent.
void Pusher::Step(ContainerKey key) {
  State* const state = FindState(key);
  const ContainerRecord* const record = store_.Find(key);
  if (state == nullptr || record == nullptr || !connected_ || state->Busy()) return;
  if (!record->Placeable() || record->container.id.empty() || record->BeingStarted()) return;

  const Effect target = Safe(*record, *state);
  // Also one that is where it should be already, only not alone yet.
  const Placement& placement = record->container.placement;
  if (target.cpus == placement.cpus && target.exclusive == placement.exclusive) {
    held_back_.erase(key);
  } else {
    held_back_.insert(key);
  }
  Send(key, *record, *state, target);
}

void Pusher::Send(ContainerKey key, const ContainerRecord& record, State& state,
                  const Effect& target) {
  const Adjustment missing = Difference(target, state.certain ? state.applied : Effect{});
  if (missing.empty()) {
    state.applied.exclusive = target.exclusive;
    state.held = target.exclusive;
    state.certain = true;
    TrackLeftover(key);
    TrackCall(key, state);
    return;
  }
  state.in_flight = true;
  TrackCall(key, state);
  state.sent = target;
  state.possible |= target.cpus.value_or(CpuSet());
  state.held |= target.exclusive;
  runtime_.UpdateContainer(
      record.container.id, missing,
      [weak = std::weak_ptr<Pusher*>(self_), key, epoch = epoch_](const Status& status) {
        const std::shared_ptr<Pusher*> self = weak.lock();
        if (self == nullptr || (*self)->epoch_ != epoch) return;
        (*self)->OnAnswer(key, status);
      });
}

void Pusher::OnAnswer(ContainerKey key, const Status& status) {
  State* const state = FindState(key);
  if (state == nullptr || !state->in_flight) return;
  state->in_flight = false;
  state->last_error = status;
  if (status.ok()) {
    Effect now = *state->sent;
    // A field that was not sent keeps the value that it had.
    if (!now.cpus) now.cpus = state->applied.cpus;
    if (!now.mems) now.mems = state->applied.mems;
    if (!state->overlapped) Record(*state, now);
    state->delay = std::chrono::milliseconds(0);
  } else {
    state->certain = false;
  }
  if (state->forwarded == 0) {
    if (state->overlapped) state->certain = false;
    state->overlapped = false;
  }
  TrackLeftover(key);
  TrackCall(key, *state);
  if (!status.ok()) {
    if (status.code() == StatusCode::kNotFound) {
      listener_.OnGone(key);
    } else {
      Retry(key, *state);
      listener_.OnFailed(key, status);
    }
  } else {
    Step(key);
    listener_.OnApplied(key);
  }
  ResumeHeldBack();
}

void Pusher::Retry(ContainerKey key, State& state) {
  state.delay = state.delay.count() == 0 ? options_.first_retry
                                         : std::min(state.delay * 2, options_.last_retry);
  state.retry = loop_.After(state.delay, [this, key] {
    State* const waiting = FindState(key);
    if (waiting == nullptr) return;
    waiting->retry.reset();
    Step(key);
    ResumeHeldBack();
  });
}

void Pusher::Record(State& state, const Effect& applied) {
  state.applied = applied;
  state.certain = true;
  state.possible = applied.cpus.value_or(everywhere_);
  state.held = applied.exclusive;
}

// The desired effect without the CPUs that others have not left yet. A container that does not run
// disturbs nobody: its start is what waits.
Effect Pusher::Safe(const ContainerRecord& record, const State& state) const {
  Effect target = DesiredEffect(record.container);
  if (!target.cpus || !record.MayRun()) return target;
  const ContainerKey key = record.container.key;
  const CpuSet gained = target.exclusive - state.applied.exclusive;
  const CpuSet shared = *target.cpus - target.exclusive;
  const CpuSet too_early = OccupiedByOthers(key, gained) | (shared & HeldByOthers(key));
  if (too_early.empty()) return target;
  target.cpus = *target.cpus - too_early;
  target.exclusive -= too_early;
  if (target.cpus->empty()) {
    // Stays where it is, and keeps what it has there for itself. It may be known to be where it has
    // left already: never back onto what others were given meanwhile.
    target.cpus = state.applied.cpus;
    if (target.cpus) {
      const CpuSet rest = *target.cpus - ExclusiveOfOthers(key);
      if (!rest.empty()) target.cpus = rest;
    }
    // What it is to share here from now on, it needs no longer for itself.
    target.exclusive = (state.held & target.cpus.value_or(CpuSet())) - shared;
  }
  return target;
}

CpuSet Pusher::ExclusiveOfOthers(ContainerKey key) const {
  CpuSet exclusive;
  for (const auto& [other, record] : store_.containers()) {
    if (other != key && record.Placeable()) exclusive |= record.container.placement.exclusive;
  }
  return exclusive;
}

CpuSet Pusher::OccupiedByOthers(ContainerKey key, const CpuSet& cpus) const {
  CpuSet occupied;
  if (cpus.empty()) return occupied;
  for (const auto& [other, state] : states_) {
    if (other == key) continue;
    const ContainerRecord* const record = store_.Find(other);
    if (record != nullptr && record->MayRun()) occupied |= PossibleOf(*record, state) & cpus;
    // At the first one already when all are everywhere, as where no daemon was before.
    if (occupied == cpus) break;
  }
  return occupied;
}

CpuSet Pusher::HeldByOthers(ContainerKey key) const {
  CpuSet held;
  for (const ContainerKey other : leftovers_) {
    if (other == key) continue;
    const ContainerRecord* const record = store_.Find(other);
    if (record != nullptr && record->MayRun()) held |= Leftover(other);
  }
  return held;
}

void Pusher::TrackLeftover(ContainerKey key) {
  if (Leftover(key).empty()) {
    leftovers_.erase(key);
  } else {
    leftovers_.insert(key);
  }
}

// An update is open until one is answered with success that no other one has met.
void Pusher::TrackCall(ContainerKey key, const State& state) {
  const ContainerRecord* const record = store_.Find(key);
  if (record == nullptr || record->container.id.empty()) return;
  if (state.in_flight || state.forwarded > 0) {
    keeper_.Begin(Keeper::Call::kUpdate, record->container.id);
  } else if (state.certain) {
    keeper_.End(Keeper::Call::kUpdate, record->container.id);
  }
}

void Pusher::ResumeHeldBack() {
  if (held_back_.empty() || !connected_) return;
  const std::set<ContainerKey> waiting = held_back_;
  for (const ContainerKey key : waiting)
    Step(key);
  const bool nothing_moves =
      std::none_of(states_.begin(), states_.end(), [this](const auto& entry) {
        const ContainerRecord* const record = store_.Find(entry.first);
        return entry.second.Busy() || (record != nullptr && record->BeingStarted());
      });
  if (held_back_.empty() || !nothing_moves) return;
  // They wait for each other.
  const std::set<ContainerKey> stuck = held_back_;
  const auto aside =
      std::find_if(stuck.begin(), stuck.end(), [this](ContainerKey key) { return StepAside(key); });
  if (aside != stuck.end()) {
    // One that was there already has nothing to be told, and so no answer is to come: it gave up
    // what it still had for itself, which can be what others wait for.
    if (!FindState(*aside)->Busy()) ResumeHeldBack();
    return;
  }
  // No CPU is nobody's own, so that there is no way around: the first one goes, the others follow.
  const ContainerKey first = *held_back_.begin();
  held_back_.erase(first);
  const ContainerRecord* const record = store_.Find(first);
  State* const state = FindState(first);
  if (record == nullptr || state == nullptr || !record->Placeable()) return;
  Send(first, *record, *state, DesiredEffect(record->container));
}

// Of containers that change places, one goes to CPUs that are nobody's own until its new ones are
// free. False where it is in nobody's way, or where there are no such CPUs.
bool Pusher::StepAside(ContainerKey key) {
  const ContainerRecord* const record = store_.Find(key);
  State* const state = FindState(key);
  if (record == nullptr || state == nullptr || !record->Placeable()) return false;
  const CpuSet of_others = ExclusiveOfOthers(key);
  const CpuSet aside = everywhere_ - of_others - HeldByOthers(key);
  const bool in_the_way = state->possible.Intersects(of_others) || !Leftover(key).empty();
  if (aside.empty() || !in_the_way) return false;
  Effect target = DesiredEffect(record->container);
  target.cpus = aside;
  target.exclusive = CpuSet();
  Send(key, *record, *state, target);
  return true;
}

}  // namespace resmgr
