// SPDX-License-Identifier: Apache-2.0
// Updates that leave in force what other programs have set.
#include <utility>

#include "pkg/resmgr/pusher.h"

namespace resmgr {
namespace {

constexpr int64_t kUnlimited = -1;  // of memory

// The quota that the runtime has set, if it is known; else the decided one.
ResourceValues KnownQuota(const ContainerRecord& record) {
  const AppliedResources desired = DesiredResources(record.container);
  const AppliedResources& applied = *record.push->applied;
  const auto known = [](const auto& set, const auto& wanted) { return set ? set : wanted; };
  return {.cpu_quota = known(applied.cpu_quota, desired.cpu_quota),
          .cpu_period = known(applied.cpu_period, desired.cpu_period)};
}

// Adds the values of other programs. A value that the policy decides, or that just changed, is not
// one of theirs.
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

// A runtime that has noted a value of another program writes it again with each update. Where that
// program has taken the value back, the update carries the value in force instead.
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
                        lifetime_.Guard([this, epoch = epoch_, updates = std::move(updates)](
                                            const ValuesOfOthers::Found& found) {
                          if (epoch_ == epoch) CallLookedUp(updates, found);
                        }));
}

void Pusher::CallLookedUp(const std::vector<LookedUp>& updates,
                          const ValuesOfOthers::Found& found) {
  std::vector<RuntimeClient::Update> calls;
  std::vector<ContainerKey> keys;
  std::vector<ResourceValues> values;  // values that differ from those to be sent
  values.reserve(updates.size());
  for (size_t i = 0; i < updates.size(); ++i) {
    // The update was not sent and never will be.
    if (TakeStray(updates[i].key, &Stray::own)) continue;
    ContainerRecord* const record = Followed(updates[i].key);
    if (record == nullptr || !record->push->in_flight) continue;
    PushState& state = *record->push;
    if (state.update != updates[i].update) continue;
    const ResourceValues* carried = state.payload.get();
    // The kubelet may be changing the values that were found in force.
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
