// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/pusher.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pkg/model/cpu_numbers.h"
#include "pkg/sys/backoff.h"

namespace resmgr {

Pusher::Pusher(EventLoop& loop, Clock& clock, RuntimeClient& runtime, ContainerStore& store,
               StateWriter& state_writer, UpdateListener& listener, const CpuSet& everywhere,
               const BrainOptions& options, std::function<CpuSet(ContainerKey)> claimed_by_others)
    : loop_(loop),
      clock_(clock),
      store_(store),
      state_writer_(state_writer),
      listener_(listener),
      everywhere_(everywhere),
      options_(options),
      handover_(store, everywhere, std::move(claimed_by_others)),
      sender_(
          runtime, store, state_writer, options.others,
          {.answered = [this](ContainerKey key, const Status& status) { OnAnswer(key, status); },
           .wanted = [this](ContainerKey key, uint64_t update) { return ToSend(key, update); }}),
      refused_updates_(options.refused_updates) {}

void Pusher::Connected() {
  connected_ = true;
  std::vector<ContainerKey> keys;
  for (const auto& [key, record] : store_.containers()) {
    if (record->push) keys.push_back(key);
  }
  StepAll(keys);
}

void Pusher::Disconnected() {
  connected_ = false;
  sender_.Disconnected();
  strays_.clear();
  circle_check_.reset();
  circle_.clear();
  for (const auto& [key, record] : store_.containers()) {
    if (!record->push) continue;
    PushState& state = *record->push;
    state.certain = false;
    state.in_flight = false;
    state.retry.reset();
    state.delay = std::chrono::milliseconds(0);
    state.sets_alone = false;
    state.stuck_since.reset();
    state.stuck_told = false;
  }
}

void Pusher::BeginCreation(ContainerRecord& record, bool carried) {
  record.push.emplace(carried ? Shared(DesiredResources(record.container)) : none_, everywhere_);
}

void Pusher::EndCreation(ContainerRecord& record) {
  if (!record.push) return;
  TakeInForce(record, record.push->applied);
  OnRuntimeReport(record);
}

void Pusher::TakeSetLater(ContainerRecord& record) {
  const NumbersSetLater& later = record.container.set_later;
  if (!record.push || !HasCpuNumbers(later)) return;
  AppliedResources now = *record.push->applied;
  ForEachCpuNumber(
      [](CpuNumber& value, const CpuNumber& set) {
        if (set) value = set;
      },
      now, later);
  record.push->applied = Shared(now);
}

void Pusher::Confirm(ContainerKey key, const AppliedResources& applied) {
  ContainerRecord* const record = store_.Find(key);
  if (record == nullptr) return;
  PushState& state = Follow(*record);
  const bool open = state_writer_.calls().Contains(OpenCalls::Kind::kUpdate, record->container.id);
  // Before a reconnect the container had these CPUs exclusively, and it still runs on them: other
  // containers must not enter them yet.
  const CpuSet still_held = open ? state.held : state.held & applied.cpus.value_or(CpuSet());
  const CpuSet still_possible = state.possible;
  state.Take(Shared(AsWritten(state, WithoutValuesOfOthers(state, applied, record->container))),
             everywhere_);
  state.held |= still_held;
  if (open) {
    state.certain = false;
    state.possible |= still_possible;
  } else {
    listener_.OnInForce(*record, *state.applied);
  }
  state.overlapped = state.UnderWay();
  EndStuck(*record);
  OnRuntimeReport(*record);
}

void Pusher::OnRuntimeReport(ContainerRecord& record) {
  handover_.Track(record);
  Step(record);
  ResumeHeldBack();
}

void Pusher::MarkUncertain(ContainerKey key) {
  ContainerRecord* const record = store_.FindFollowed(key);
  if (record == nullptr) return;
  PushState& state = *record->push;
  state.certain = false;
  state.possible = everywhere_;
  state.NoteOverlap();
  Step(*record);
}

void Pusher::MarkOverlap(ContainerKey key) {
  if (ContainerRecord* const record = store_.FindFollowed(key)) record->push->NoteOverlap();
}

void Pusher::Wake(std::span<const ContainerKey> keys) {
  // Done for all containers first, so that none enters CPUs that another one still holds.
  for (const ContainerKey key : keys) {
    if (const ContainerRecord* const record = store_.FindFollowed(key)) handover_.Track(*record);
  }
  StepAll(keys);
}

// The updates of all of them are sent together.
void Pusher::StepAll(std::span<const ContainerKey> keys) {
  sender_.BeginGathering(keys.size());
  for (const ContainerKey key : keys)
    Step(key);
  ResumeHeldBack();
  sender_.SendGathered();
}

AppliedResources Pusher::BeginForwarded(ContainerKey key) {
  ContainerRecord* const record = store_.Find(key);
  PushState& state = Follow(*record);
  AppliedResources target = *handover_.SafeTarget(*record).resources;
  state.NoteOverlap();
  if (record->life.BeingStarted() || HasStray(key)) state.overlapped = true;
  // The kubelet's request carries the decided values, so a further try of them is not needed.
  state.retry.reset();
  ++state.forwarded;
  state.possible |= target.cpus.value_or(everywhere_);
  if (state.noted != nullptr) state.possible |= state.noted->cpus.value_or(everywhere_);
  state.held |= target.exclusive;
  handover_.Track(*record);
  TrackCall(*record);
  return target;
}

void Pusher::EndForwarded(ContainerKey key, const AppliedResources& sent, bool applied) {
  if (TakeStray(key, &Stray::forwarded)) return;
  ContainerRecord* const record = store_.FindFollowed(key);
  if (record == nullptr || record->push->forwarded == 0) return;
  PushState& state = *record->push;
  --state.forwarded;
  if (applied) state.noted = nullptr;
  if (applied && !state.overlapped) {
    TakeInForce(*record, WithNumbersBefore(sent, state));
  } else {
    state.certain = false;
  }
  if (!state.UnderWay()) state.overlapped = false;
  handover_.Track(*record);
  TrackCall(*record);
  Step(*record);
  ResumeHeldBack();
}

bool Pusher::Settled(ContainerKey key) const {
  const ContainerRecord* const record = store_.FindFollowed(key);
  if (record == nullptr) return false;
  const PushState& state = *record->push;
  if (!state.certain || state.UnderWay() || state.noted) return false;
  return Difference(DesiredResources(record->container), *state.applied).empty();
}

Status Pusher::LastError(ContainerKey key) const {
  const ContainerRecord* const record = store_.FindFollowed(key);
  return record == nullptr ? OkStatus() : record->push->last_error;
}

PushState& Pusher::Follow(ContainerRecord& record) {
  return record.push ? *record.push : record.push.emplace(none_, everywhere_);
}

void Pusher::Step(ContainerKey key) {
  if (ContainerRecord* const record = store_.Find(key); record != nullptr) Step(*record);
}

// Sends the values that are not in force, if they may be sent now.
void Pusher::Step(ContainerRecord& record) {
  if (!record.push || !connected_) return;
  // The pause after a write into the cgroup is skipped if the container may no longer be where it
  // should be.
  if (record.push->noted != nullptr && !record.push->certain) record.push->retry.reset();
  if (record.push->Busy() || HasStray(record.container.key)) return;
  if (!record.Placeable() || record.container.id.empty() || record.life.BeingStarted()) return;

  // After a creation there is usually nothing to send. A container that runs may have to wait.
  if (!record.MayRun() && record.push->certain && record.push->noted == nullptr &&
      IsDesired(*record.push->applied, record.container)) {
    (void)handover_.Release(record.container.key);
    Settle(record);
    return;
  }
  Handover::Target target = handover_.SafeTarget(record);
  if (!target.whole) {
    handover_.HoldBack(record.container.key);
  } else if (handover_.Release(record.container.key)) {
    move_aside_ = 1;
  }
  if (record.push->NumbersWait() && !PrepareSetsAlone(*record.push, *target.resources)) return;
  Send(record, std::move(target.resources));
}

void Pusher::Send(ContainerRecord& record, SharedResources target) {
  PushState& state = *record.push;
  const SharedResources& present = state.certain && !state.noted ? state.applied : none_;
  auto missing = std::make_shared<const ResourceValues>(Difference(*target, *present));
  if (missing->empty()) return SettleAs(record, *target);
  if (state.sets_alone && missing->has_sets()) {
    target = WithoutNumbers(*target, *missing);
    missing = std::make_shared<const ResourceValues>(
        ResourceValues{.cpus = missing->cpus, .mems = missing->mems});
  }
  state.in_flight = true;
  TrackCall(record);
  if (target->cpus) state.possible |= *target->cpus;
  if (state.noted != nullptr) state.possible |= state.noted->cpus.value_or(everywhere_);
  state.held |= target->exclusive;
  state.sent = std::move(target);
  state.payload = std::move(missing);
  ++state.update;
  sender_.Send(record);
}

void Pusher::TakeInForce(ContainerRecord& record, SharedResources now) {
  record.push->Take(std::move(now), everywhere_);
  EndStuck(record);
  listener_.OnInForce(record, *record.push->applied);
}

// The runtime has all values of `target`. It is never sent the exclusive CPUs, which are only noted
// here.
void Pusher::SettleAs(ContainerRecord& record, const AppliedResources& target) {
  PushState& state = *record.push;
  const bool told = state.certain && state.applied->exclusive == target.exclusive;
  if (state.applied->exclusive != target.exclusive) {
    AppliedResources applied = *state.applied;
    applied.exclusive = target.exclusive;
    state.applied = Shared(applied);
  }
  Settle(record);
  if (!told) listener_.OnInForce(record, *state.applied);
}

// Marks the container as settled: all desired values are applied.
void Pusher::Settle(ContainerRecord& record) {
  PushState& state = *record.push;
  state.held = state.applied->exclusive;
  state.certain = true;
  EndStuck(record);
  Recover(record);
  handover_.Track(record);
  TrackCall(record);
}

void Pusher::OnAnswer(ContainerKey key, const Status& status) {
  Ended ended;
  ContainerRecord* const record = EndUpdate(key, 0, ended);
  if (record == nullptr) return;
  if (status.ok()) {
    OnSuccess(*record, std::move(ended.sent));
  } else if (!TrySetsAlone(*record, status, *ended.carried) && !TryWrite(*record, status, ended) &&
             !LookForCause(*record, status, ended)) {
    OnFailure(*record, status, *ended.carried);
  }
  ResumeAfterAnswers();
}

ContainerRecord* Pusher::ToSend(ContainerKey key, uint64_t update) {
  if (TakeStray(key, &Stray::own)) return nullptr;  // the container was forgotten
  ContainerRecord* const record = store_.FindFollowed(key);
  const bool is_open =
      record != nullptr && record->push->in_flight && record->push->update == update;
  return is_open ? record : nullptr;
}

ContainerRecord* Pusher::EndUpdate(ContainerKey key, uint64_t update, Ended& ended) {
  ContainerRecord* const record = TakeStray(key, &Stray::own) ? nullptr : store_.FindFollowed(key);
  if (record == nullptr) {
    listener_.OnMoot();
    return nullptr;
  }
  PushState& state = *record->push;
  if (!state.in_flight || (update != 0 && state.update != update)) return nullptr;
  state.in_flight = false;
  ended = {std::move(state.sent), std::move(state.payload)};
  return record;
}

void Pusher::OnSuccess(ContainerRecord& record, SharedResources sent) {
  PushState& state = *record.push;
  const bool sets_alone = std::exchange(state.sets_alone, false);
  state.noted = nullptr;
  if (!state.overlapped) TakeInForce(record, OverApplied(std::move(sent), state.applied));
  EndOverlap(record);
  if (sets_alone) {
    Retry(record.container.key, state);
  } else {
    state.restore = false;
    Recover(record);
    state.delay = std::chrono::milliseconds(0);
    Step(record);
  }
  listener_.OnApplied(record.container.key);
}

// Called after an answer: if two updates overlapped, the values in force are not known.
void Pusher::EndOverlap(ContainerRecord& record) {
  PushState& state = *record.push;
  if (state.forwarded == 0) {
    if (state.overlapped) state.certain = false;
    state.overlapped = false;
  }
  handover_.Track(record);
  TrackCall(record);
}

void Pusher::Retry(ContainerKey key, PushState& state) {
  state.delay = Backoff::After(state.delay, options_.first_retry, options_.last_retry);
  RetryAfter(state.delay, key, state);
}

void Pusher::RetryAfter(std::chrono::milliseconds delay, ContainerKey key, PushState& state) {
  state.retry = clock_.After(delay, [this, key] {
    ContainerRecord* const waiting = store_.FindFollowed(key);
    if (waiting == nullptr) return;
    waiting->push->retry.reset();
    Step(*waiting);
    ResumeHeldBack();
  });
}

// A container's update counts as open until an update succeeds that did not overlap another one.
void Pusher::TrackCall(const ContainerRecord& record) {
  if (record.container.id.empty()) return;
  const PushState& state = *record.push;
  const bool is_open = state.UnderWay();
  if (!is_open && !(state.certain && state_writer_.calls().size() > 0)) return;
  const OpenCalls::Key key = OpenCalls::KeyOf(StateWriter::Call::kUpdate, record.container.id);
  if (is_open) {
    state_writer_.calls().Begin(key);
  } else {
    state_writer_.EndUpdate(key);
  }
}

}  // namespace resmgr
