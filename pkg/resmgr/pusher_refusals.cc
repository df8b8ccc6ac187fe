// SPDX-License-Identifier: Apache-2.0
// Updates that fail: what is sent next, and how long starts wait for such a container. Also updates
// that leave in force what other programs have set.
#include <memory>
#include <utility>

#include "pkg/base/call_end.h"
#include "pkg/model/cpu_numbers.h"
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

constexpr int64_t kUnlimited = -1;  // memory limit

// The quota that the runtime has set, if it is known; else the decided one.
ResourceValues KnownQuota(const ContainerRecord& record) {
  const AppliedResources desired = DesiredResources(record.container);
  const AppliedResources& applied = *record.push->applied;
  const auto known = [](const auto& set, const auto& wanted) { return set ? set : wanted; };
  return {.cpu_quota = known(applied.cpu_quota, desired.cpu_quota),
          .cpu_period = known(applied.cpu_period, desired.cpu_period)};
}

// Adds the values that other programs have set to the update. The quota is left out if the policy
// decides it or the update changes it.
ResourceValues WithOthers(const ContainerRecord& record, const ResourceValues& of_others,
                          ResourceValues values) {
  const Placement& placement = record.container.placement;
  const ResourceValues known = KnownQuota(record);
  const auto unchanged = [](const auto& sent, const auto& before) {
    return !sent || sent == before;
  };
  if (of_others.cpu_quota && !placement.cpu_quota && !placement.cpu_period &&
      unchanged(values.cpu_quota, known.cpu_quota) &&
      unchanged(values.cpu_period, known.cpu_period)) {
    values.cpu_quota = of_others.cpu_quota;
    values.cpu_period = of_others.cpu_period;
  }
  values.memory_limit = of_others.memory_limit;
  values.memory_swap_limit = of_others.memory_swap_limit;
  return values;
}

// With each update a runtime writes the values that it has noted, also a value of another program
// that an earlier update carried. If that program has removed its value since, the update carries
// the value in force instead.
ResourceValues NotedOr(const ContainerRecord& record, ResourceValues found) {
  if (record.push->kept == nullptr) return found;
  const ResourceValues& noted = *record.push->kept;
  const LinuxResources& requested = record.container.requested;
  if (noted.memory_limit && !found.memory_limit) {
    const int64_t limit = requested.memory_limit.value_or(0);
    found.memory_limit = limit > 0 ? limit : kUnlimited;
  }
  if (noted.memory_swap_limit && !found.memory_swap_limit) found.memory_swap_limit = kUnlimited;
  if (noted.cpu_quota && !found.cpu_quota) {
    const ResourceValues known = KnownQuota(record);
    found.cpu_quota = known.cpu_quota;
    found.cpu_period = known.cpu_period;
  }
  return found;
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
  const auto done = lifetime_.Guard(
      [this, key, update = state.update, epoch = epoch_, why](const Status& status) {
        if (epoch_ == epoch) OnWriteEnded(key, update, why, status);
      });
  const auto late = lifetime_.Guard([this, key] { MarkUncertain(key); });
  options_.cpuset_writer->Write({.cgroup_parent = record.pod->pod.cgroup_parent,
                                 .id = record.container.id,
                                 .cpus = carried.cpus,
                                 .mems = carried.mems},
                                {.done = done, .late = late});
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
  const auto done = lifetime_.Guard([this, key = record.container.key, update = state.update,
                                     epoch = epoch_, why](const std::string& cause) {
    if (epoch_ == epoch) OnCause(key, update, why, cause);
  });
  options_.causes->Find({.cgroup_parent = record.pod->pod.cgroup_parent,
                         .id = record.container.id,
                         .cpus = carried.cpus,
                         .mems = carried.mems},
                        done);
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
    Record(state, OverApplied(std::move(sent), state.applied));
    EndStuck(record);
    listener_.OnInForce(record, *state.applied);
  }
  EndOverlap(record);
  state.delay = std::chrono::milliseconds(0);
  if (state.certain) RetryAfter(kWrittenRetries * options_.last_retry, key, state);
  listener_.OnWritten(record, state.last_error);
  // The decision may have changed meanwhile.
  Step(record);
  listener_.OnApplied(key);
}

AppliedResources Pusher::AsWritten(ContainerRecord& record, AppliedResources reported) {
  PushState& state = *record.push;
  if (state.noted == nullptr) return reported;
  if (reported.cpus != state.noted->cpus || reported.mems != state.noted->mems) {
    state.noted = nullptr;
    return reported;
  }
  reported.cpus = state.applied->cpus;
  reported.mems = state.applied->mems;
  return reported;
}

bool Pusher::WrittenPastRuntime(ContainerKey key) const {
  const ContainerRecord* const record = Followed(key);
  return record != nullptr && record->push->noted != nullptr && OnlyNumbersRefused(key);
}

SharedResources Pusher::WithoutNumbers(const AppliedResources& resources,
                                       const ResourceValues& carried) {
  AppliedResources rest = resources;
  ForEachCpuNumber(
      [](CpuNumber& value, const CpuNumber& sent) {
        if (sent) value.reset();
      },
      rest, carried);
  return Shared(rest);
}

bool Pusher::OnlyNumbersRefused(ContainerKey key) const {
  const ContainerRecord* const record = Followed(key);
  if (record == nullptr) return false;
  const PushState& state = *record->push;
  if (!state.certain || state.in_flight || state.forwarded > 0) return false;
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
  ContainerRecord* const record = Followed(key);
  if (record == nullptr || record->push->stuck_since) return;
  record->push->stuck_since = clock_.Steady();
}

std::optional<Clock::SteadyTime> Pusher::StuckSince(ContainerKey key) const {
  const ContainerRecord* const record = Followed(key);
  return record == nullptr ? std::nullopt : record->push->stuck_since;
}

bool Pusher::TellStuck(ContainerKey key) {
  ContainerRecord* const record = Followed(key);
  return record != nullptr && !std::exchange(record->push->stuck_told, true);
}

LinuxResources WithoutValuesOfOthers(const PushState& state, LinuxResources reported) {
  if (state.kept == nullptr) return reported;
  const auto ignore = [](const auto& of_others, auto& value) {
    if (of_others && value == of_others) value.reset();
  };
  ignore(state.kept->cpu_quota, reported.cpu_quota);
  ignore(state.kept->cpu_period, reported.cpu_period);
  return reported;
}

void Pusher::Restore(ContainerKey key) {
  if (ContainerRecord* const record = Followed(key)) {
    record->push->restore = true;
    record->push->kept = nullptr;
  }
  MarkUncertain(key);
}

void Pusher::LookUp() {
  std::vector<LookedUp> updates = std::exchange(to_look_up_, {});
  std::vector<ValuesOfOthers::Subject> subjects;
  subjects.reserve(updates.size());
  for (const LookedUp& update : updates) {
    const ContainerRecord& record = *store_.Find(update.key);
    subjects.push_back({.cgroup_parent = record.pod->pod.cgroup_parent,
                        .id = record.container.id,
                        .known = KnownQuota(record),
                        .memory_limit = record.container.requested.memory_limit});
  }
  options_.others->Look(std::move(subjects),
                        lifetime_.Guard([this, epoch = epoch_, updates = std::move(updates),
                                         follow = runtime_.UpdatesFollow()](
                                            const ValuesOfOthers::Found& found) mutable {
                          if (epoch_ == epoch) CallLookedUp(updates, found);
                          follow.reset();
                        }));
}

void Pusher::CallLookedUp(const std::vector<LookedUp>& updates,
                          const ValuesOfOthers::Found& found) {
  std::vector<RuntimeClient::Update> calls;
  std::vector<ContainerKey> keys;
  std::vector<ResourceValues> values;  // values to be sent, with those of other programs added
  values.reserve(updates.size());
  for (size_t i = 0; i < updates.size(); ++i) {
    // The container was forgotten, so the update is never sent.
    if (TakeStray(updates[i].key, &Stray::own)) continue;
    ContainerRecord* const record = Followed(updates[i].key);
    if (record == nullptr || !record->push->in_flight) continue;
    PushState& state = *record->push;
    if (state.update != updates[i].update) continue;
    const ResourceValues* carried = state.payload.get();
    // The values in force are only used if no update of the kubelet may be changing them.
    const bool quiet = !state.overlapped && state.forwarded == 0;
    if (quiet && i < found.size() && (!found[i].empty() || state.kept != nullptr)) {
      values.push_back(WithOthers(*record, NotedOr(*record, found[i]), *carried));
      state.kept = found[i].empty() ? nullptr : std::make_shared<const ResourceValues>(found[i]);
      carried = &values.back();
    }
    calls.push_back({.id = record->container.id, .adjustment = *carried});
    keys.push_back(updates[i].key);
  }
  if (calls.empty()) return;
  unanswered_ += calls.size();
  runtime_.UpdateContainers(calls, lifetime_.Guard([this, epoch = epoch_, keys = std::move(keys)](
                                                       size_t index, const Status& status) {
    TakeAnswer(epoch, keys[index], status);
  }));
}

AppliedResources Pusher::WithoutKept(const ContainerRecord& record, AppliedResources reported) {
  if (record.push->kept == nullptr) return reported;
  const ResourceValues& kept = *record.push->kept;
  const AppliedResources desired = DesiredResources(record.container);
  const auto ignore = [](const auto& of_others, auto& value, const auto& wanted) {
    if (of_others && value == of_others) value = wanted;
  };
  ignore(kept.cpu_quota, reported.cpu_quota, desired.cpu_quota);
  ignore(kept.cpu_period, reported.cpu_period, desired.cpu_period);
  return reported;
}

}  // namespace resmgr
