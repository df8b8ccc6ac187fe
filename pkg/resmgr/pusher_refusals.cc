// SPDX-License-Identifier: Apache-2.0
// Updates that fail: what is sent next, and how long starts wait for such a container.
#include <memory>
#include <utility>

#include "pkg/base/call_end.h"
#include "pkg/resmgr/pusher.h"

namespace resmgr {
namespace {

// Whether the runtime refused the update. If it did not answer or is not there, a different update
// would fail, too.
bool IsRefusal(const Status& status) {
  return !status.ok() && status.code() != StatusCode::kNotFound && !IsUnclear(status.code());
}

// Returns the failure with its likely cause. If no cause was found this time, as may happen on a
// busy machine, the cause found before for the same failure is used.
Status WithCause(const Status& why, const std::string& cause, Status& explained) {
  const std::string begin = fmt::format("{}; likely cause: ", Message(why));
  if (!cause.empty()) return explained = MakeStatus(why.code(), begin + cause);
  const bool same = why.code() == explained.code() && Message(explained).starts_with(begin);
  return same ? explained : why;
}

// The pause before the next update is longer if the cpuset was written past the runtime: while it
// refuses an update, the runtime may briefly restore the values of its own notes.
constexpr int kWrittenRetries = 12;

CpusetSubject SubjectOf(const ContainerRecord& record, const ResourceValues& carried) {
  return {.cgroup_parent = record.pod->pod.cgroup_parent,
          .id = record.container.id,
          .cpus = carried.cpus,
          .mems = carried.mems};
}

}  // namespace

// Sends CPUs and memory nodes without the numbers. False if there is no such smaller update: the
// failure is then final for now.
bool Pusher::TrySetsAlone(ContainerRecord& record, const Status& status,
                          const ResourceValues& carried) {
  PushState& state = *record.push;
  if (!IsRefusal(status) || !carried.has_sets() || !carried.has_numbers()) return false;
  // Nothing is done now, since another update follows that of the client.
  if (state.forwarded > 0) return false;
  state.certain = false;
  state.last_error = status;
  state.sets_alone = true;
  Step(record);
  if (state.in_flight) {
    // Observers count every update; this one is moot, since the next one decides the outcome.
    listener_.OnMoot();
    return true;
  }
  state.sets_alone = false;
  return false;
}

// Prepares an update of CPUs and memory nodes alone for a container whose numbers wait for their
// next try. False if only numbers are missing.
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
  // A new cause is not looked for here: an update of a kubelet may be under way.
  const Status told = WithCause(status, "", state.explained);
  state.last_error = told;
  state.sets_alone = false;
  if (IsRefusal(status) && state.certain && !carried.has_sets()) {
    // Only numbers were refused: the container's CPUs and memory nodes are still known.
    state.applied = WithoutNumbers(*state.applied, carried);
  } else {
    state.certain = false;
    state.noted = nullptr;
    if (!state.stuck_since) state.stuck_since = clock_.Steady();
  }
  EndOverlap(record);
  if (status.code() == StatusCode::kNotFound) return listener_.OnGone(key);
  Retry(key, state);
  listener_.OnFailed(key, told);
}

// Writes the cpuset into the cgroup, except for a container with exclusive CPUs: after a restart
// the place in the runtime's report would count as its place, and the exclusive CPUs would be lost.
// The cpuset of a shared container follows from the other containers, and would be written again.
bool Pusher::TryWrite(ContainerRecord& record, const Status& why, const Ended& ended) {
  if (options_.cpuset_writer == nullptr || refused_updates_ != RefusedUpdates::kWrite) return false;
  PushState& state = *record.push;
  const ResourceValues& carried = *ended.carried;
  if (!IsRefusal(why) || !carried.has_sets() || carried.has_numbers()) return false;
  if (state.forwarded > 0 || !record.Placeable()) return false;
  if (!ended.sent->exclusive.empty() || !record.container.placement.exclusive.empty()) return false;
  KeepOpen(state, why, ended);
  const ContainerKey key = record.container.key;
  const auto done = sender_.Guard([this, key, update = state.update, why](const Status& status) {
    OnWriteEnded(key, update, why, status);
  });
  const auto late = lifetime_.Guard([this, key] { MarkUncertain(key); });
  options_.cpuset_writer->Write(SubjectOf(record, carried), {.done = done, .late = late});
  return true;
}

void Pusher::KeepOpen(PushState& state, const Status& why, const Ended& ended) {
  state.certain = false;
  state.last_error = why;
  state.in_flight = true;
  state.sent = ended.sent;
  state.payload = ended.carried;
}

void Pusher::OnWriteEnded(ContainerKey key, uint64_t update, const Status& why,
                          const Status& status) {
  Ended ended;
  ContainerRecord* const record = EndUpdate(key, update, ended);
  if (record == nullptr) return;
  if (status.ok()) {
    OnWriteSuccess(*record, why, std::move(ended.sent));
  } else {
    const Status both = MakeStatus(
        why.code(),
        fmt::format("{}; its cpuset cannot be written either: {}", Message(why), Message(status)));
    if (!LookForCause(*record, both, ended)) OnFailure(*record, both, *ended.carried);
  }
  ResumeAfterAnswers();
}

bool Pusher::LookForCause(ContainerRecord& record, const Status& why, const Ended& ended) {
  const ResourceValues& carried = *ended.carried;
  if (options_.causes == nullptr || !IsRefusal(why) || !carried.has_sets()) return false;
  PushState& state = *record.push;
  if (state.forwarded > 0 || !RefusalCauses::MayBeFound(Message(why))) return false;
  KeepOpen(state, why, ended);
  const auto done =
      sender_.Guard([this, key = record.container.key, update = state.update,
                     why](const std::string& cause) { OnCause(key, update, why, cause); });
  options_.causes->Find(SubjectOf(record, carried), done);
  return true;
}

void Pusher::OnCause(ContainerKey key, uint64_t update, const Status& why,
                     const std::string& cause) {
  Ended ended;
  ContainerRecord* const record = EndUpdate(key, update, ended);
  if (record == nullptr) return;
  OnFailure(*record, WithCause(why, cause, record->push->explained), *ended.carried);
  ResumeAfterAnswers();
}

void Pusher::OnWriteSuccess(ContainerRecord& record, const Status& why, SharedResources sent) {
  PushState& state = *record.push;
  const ContainerKey key = record.container.key;
  state.sets_alone = false;
  state.last_error = MakeStatus(
      why.code(),
      fmt::format("{}; its cpuset was written into its cgroup past the runtime", Message(why)));
  if (!state.overlapped) {
    if (state.noted == nullptr) {
      state.noted = std::make_shared<const ResourceValues>(
          ResourceValues{.cpus = state.applied->cpus, .mems = state.applied->mems});
    }
    TakeInForce(record, OverApplied(std::move(sent), state.applied));
  }
  EndOverlap(record);
  state.delay = std::chrono::milliseconds(0);
  if (state.certain) RetryAfter(kWrittenRetries * options_.last_retry, key, state);
  listener_.OnWritten(record, state.last_error);
  // The decision may have changed meanwhile.
  Step(record);
  listener_.OnApplied(key);
}

bool Pusher::WrittenPastRuntime(ContainerKey key) const {
  const ContainerRecord* const record = store_.FindFollowed(key);
  return record != nullptr && record->push->noted != nullptr && OnlyNumbersRefused(key);
}

bool Pusher::OnlyNumbersRefused(ContainerKey key) const {
  const ContainerRecord* const record = store_.FindFollowed(key);
  if (record == nullptr) return false;
  const PushState& state = *record->push;
  if (!state.certain || state.UnderWay()) return false;
  if (!IsRefusal(state.last_error)) return false;
  return !Difference(DesiredResources(record->container), *state.applied).has_sets();
}

// The container no longer counts as stuck if it has left all CPUs that it must leave.
void Pusher::EndStuck(ContainerRecord& record) const {
  PushState& state = *record.push;
  if (!state.stuck_since || !handover_.ToLeave(record).empty()) return;
  if (!Handover::LeftoverOf(record).empty()) return;
  state.stuck_since.reset();
  state.stuck_told = false;
}

void Pusher::Recover(ContainerRecord& record) {
  if (record.push->last_error.ok()) return;
  record.push->last_error = OkStatus();
  record.push->explained = OkStatus();
  listener_.OnRecovered(record);
}

void Pusher::NoteWaitedFor(ContainerKey key) {
  ContainerRecord* const record = store_.FindFollowed(key);
  if (record == nullptr || record->push->stuck_since) return;
  record->push->stuck_since = clock_.Steady();
}

std::optional<Clock::SteadyTime> Pusher::StuckSince(ContainerKey key) const {
  const ContainerRecord* const record = store_.FindFollowed(key);
  return record == nullptr ? std::nullopt : record->push->stuck_since;
}

bool Pusher::TellStuck(ContainerKey key) {
  ContainerRecord* const record = store_.FindFollowed(key);
  return record != nullptr && !std::exchange(record->push->stuck_told, true);
}

void Pusher::Restore(ContainerKey key) {
  if (ContainerRecord* const record = store_.FindFollowed(key)) {
    record->push->restore = true;
    record->push->kept = nullptr;
  }
  MarkUncertain(key);
}

}  // namespace resmgr
