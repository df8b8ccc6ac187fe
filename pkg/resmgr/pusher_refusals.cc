// SPDX-License-Identifier: Apache-2.0
// Updates that fail: what is sent next, and how long starts wait for such a container.
#include <utility>

#include "pkg/resmgr/pusher.h"

namespace resmgr {
namespace {

// The runtime said no. Without an answer, or without a runtime, another update would fare alike.
bool IsRefusal(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
    case StatusCode::kNotFound:
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kCancelled:
      return false;
    default:
      return true;
  }
}

}  // namespace

// False where the failure stands: nothing else can be sent now.
bool Pusher::TrySetsAlone(ContainerRecord& record, const Status& status,
                          const ResourceValues& carried) {
  PushState& state = *record.push;
  if (!IsRefusal(status) || !carried.has_sets() || !carried.has_numbers()) return false;
  // Its answer is followed by another update.
  if (state.forwarded > 0) return false;
  state.certain = false;
  state.last_error = status;
  state.sets_alone = true;
  Step(record);
  if (state.in_flight) return true;
  state.sets_alone = false;
  return false;
}

// For one whose numbers wait for their next try. False where nothing but these is missing.
bool Pusher::PrepareSetsAlone(PushState& state, const AppliedResources& target) {
  if (!Difference(target, *state.applied).has_sets()) return false;
  state.retry.reset();
  state.sets_alone = true;
  return true;
}

void Pusher::OnFailure(ContainerRecord& record, const Status& status,
                       const ResourceValues& carried) {
  const ContainerKey key = record.container.key;
  PushState& state = *record.push;
  state.last_error = status;
  state.sets_alone = false;
  if (IsRefusal(status) && state.certain && !carried.has_sets()) {
    // Where it runs is as it was.
    state.applied = WithoutNumbers(*state.applied, carried);
  } else {
    state.certain = false;
    if (!state.stuck_since) state.stuck_since = loop_.Now();
  }
  EndOverlap(record);
  if (status.code() == StatusCode::kNotFound) return listener_.OnGone(key);
  Retry(key, state);
  listener_.OnFailed(key, status);
}

SharedResources Pusher::WithoutNumbers(const AppliedResources& resources,
                                       const ResourceValues& carried) {
  AppliedResources rest = resources;
  if (carried.cpu_shares) rest.cpu_shares.reset();
  if (carried.cpu_quota) rest.cpu_quota.reset();
  if (carried.cpu_period) rest.cpu_period.reset();
  return recent_.Share(rest);
}

bool Pusher::OnlyNumbersRefused(ContainerKey key) const {
  const ContainerRecord* const record = Followed(key);
  if (record == nullptr) return false;
  const PushState& state = *record->push;
  if (!state.certain || state.in_flight || state.forwarded > 0) return false;
  if (!IsRefusal(state.last_error)) return false;
  return !Difference(DesiredResources(record->container), *state.applied).has_sets();
}

// Where it has left all that it is to leave.
void Pusher::EndStuck(ContainerRecord& record) const {
  PushState& state = *record.push;
  if (!state.stuck_since || !ToLeave(record, everywhere_).empty()) return;
  if (!LeftoverOf(record).empty()) return;
  state.stuck_since.reset();
  state.stuck_told = false;
}

void Pusher::Recover(ContainerRecord& record) {
  if (record.push->last_error.ok()) return;
  record.push->last_error = OkStatus();
  listener_.OnRecovered(record);
}

void Pusher::NoteWaitedFor(ContainerKey key) {
  ContainerRecord* const record = Followed(key);
  if (record == nullptr || record->push->stuck_since) return;
  record->push->stuck_since = loop_.Now();
}

std::optional<EventLoop::Clock::time_point> Pusher::StuckSince(ContainerKey key) const {
  const ContainerRecord* const record = Followed(key);
  return record == nullptr ? std::nullopt : record->push->stuck_since;
}

bool Pusher::TellStuck(ContainerKey key) {
  ContainerRecord* const record = Followed(key);
  return record != nullptr && !std::exchange(record->push->stuck_told, true);
}

}  // namespace resmgr
