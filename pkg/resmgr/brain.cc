// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/brain.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "pkg/resmgr/reported_values.h"
#include "pkg/topology/machine.h"

namespace resmgr {
namespace {

// `others`: there are other containers, whose end would free something.
std::string_view Remedy(const Status& why, bool others) {
  switch (why.code()) {
    case StatusCode::kResourceExhausted:
      if (!others) {
        return "no other container has any of it: lower its request, or use a larger node";
      }
      return "it fits when others have ended, or on another node";
    case StatusCode::kInvalidArgument:
      return "change what its pod asks for";
    case StatusCode::kNotFound:
      return "its pod has to name the claim among its resourceClaims";
    case StatusCode::kAlreadyExists:
      return "give it a claim of its own";
    case StatusCode::kFailedPrecondition:
      return "another try may find them given up, and policy.StartFailurePolicy decides what "
             "happens";
    case StatusCode::kUnavailable:
      return "try again when the runtime is back";
    default:
      return "this is a fault of cri-resmgr";
  }
}

// Whether a larger machine could have satisfied the request.
bool IsForRoom(const Status& why) {
  return why.code() == StatusCode::kResourceExhausted || why.code() == StatusCode::kInvalidArgument;
}

}  // namespace

Brain::Brain(EventLoop& loop, const Machine& on_machine, std::unique_ptr<Policy> policy,
             RuntimeClient& the_runtime, StateStore* state, const BrainOptions& the_options,
             UpdateListener& listener, Synchronizer::Owner& owner, std::function<void()> on_pushed)
    : options(the_options),
      log(GetLogger("resmgr")),
      loop_clock(loop),
      clock(options.clock == nullptr ? loop_clock : *options.clock),
      timers(options.timers == nullptr ? loop_clock : *options.timers),
      runtime(the_runtime),
      machine(on_machine),
      memory_capacity(MemoryCapacity(on_machine)),
      log_observer(log),
      metrics_observer(options.metrics),
      limit_warnings(options.runtimes),
      store(options.runtimes),
      state_writer(loop, state, store, the_runtime.Renames()),
      decider(on_machine, std::move(policy), store, options.decision_times),
      pusher(loop, timers, the_runtime, store, state_writer, listener, on_machine.online(), options,
             [this](ContainerKey key) { return decider.ClaimedByOthers(key); }),
      look_again_timers(clock, [this](ContainerKey key) { LookAgain(key); }),
      synchronizer(timers, the_runtime, owner, options),
      pushed(std::move(on_pushed)) {
  observers.Add(log_observer);
  observers.Add(metrics_observer);
  observers.Add(limit_warnings);
  observers.Add(annotation_warnings);
  if (options.observer != nullptr) observers.Add(*options.observer);
}

Observer::Act Brain::ActOn(const ContainerRecord& record, std::string_view why,
                           const Placement& from) const {
  Observer::Act act = ActAt(record, why);
  act.from = Place::Of(from);
  act.others = decider.shifts();
  return act;
}

void Brain::ReportMoves(std::span<const Shift> shifts, std::string_view why) {
  for (const Shift& shift : shifts) {
    const ContainerRecord* const record = store.Find(shift.first);
    if (record == nullptr) continue;
    Observer::Act act = ActAt(*record, why);
    act.from = shift.from;
    observers.OnMoved(act, shift);
  }
}

Status Brain::Refuse(const ContainerRecord& record, std::string_view what, const Status& why,
                     const Requirements* asked) {
  Container container = record.container;
  if (asked != nullptr) container.requirements = *asked;
  const Status told = WithWaysIn(record.pod->pod, container, why);
  observers.OnRefused(ActAt(record, what), told);
  return AsRefusal(record, told);
}

// "Never" is not said while CPUs are offline, since the request may be granted when they are back.
Status Brain::WithWaysIn(const Pod& pod, const Container& container, const Status& why) const {
  if (!IsForRoom(why)) return why;
  std::string text(Message(why));
  const std::vector<std::string> ways = policy().WaysIn(store.placeable(), pod, container);
  if (!ways.empty()) {
    text += fmt::format("; it would fit now with {}", fmt::join(ways, ", or with "));
  } else if (why.code() == StatusCode::kInvalidArgument && OfflineNote().empty()) {
    text += "; never on this node: change the request";
  }
  return MakeStatus(why.code(), text);
}

Status Brain::AsRefusal(const ContainerRecord& record, const Status& why) const {
  const std::string name = FullName(record.pod->pod, record.container.name);
  bool others = false;
  store.all().ForEachContainer([&](const Pod&, const Container& container) {
    others = others ||
             (container.key != record.container.key && container.state != ContainerState::kExited);
  });
  return MakeStatus(
      why.code(),
      fmt::format("cri-resmgr ({}): {}{}; container {}: {}", policy().name(), Message(why),
                  IsForRoom(why) ? OfflineNote() : "", name, Remedy(why, others)));
}

// "; CPU 9 is offline", or "".
std::string Brain::OfflineNote() const {
  const CpuSet all = decider.offline() | OfflineCpus(machine);
  if (all.empty()) return "";
  return all.size() == 1 ? fmt::format("; CPU {} is offline", all.ToString())
                         : fmt::format("; CPUs {} are offline", all.ToString());
}

void Brain::Append(ContainerKeys& changed, StatusOr<ContainerKeys> more) {
  if (!more.ok()) {
    log.Error("the policy failed to release CPUs: {}", Describe(more.status()));
    more = decider.Recover();
  }
  changed.insert(changed.end(), more->begin(), more->end());
}

void Brain::Push(ContainerKeys changed) {
  if (!std::ranges::is_sorted(changed)) std::ranges::sort(changed);
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  pusher.Wake(changed);
  for (const ContainerKey key : changed) {
    ContainerRecord* const record = store.Find(key);
    if (record == nullptr) continue;
    NoteTold(*record);
    state_writer.MarkChanged(*record);
    look_again_timers.Follow(*record);
  }
  pushed();
}

Status Brain::CarryOut(StatusOr<ContainerKeys> changed, std::string_view why) {
  if (changed.ok()) {
    ReportMoves(why);
    Push(*std::move(changed));
    return OkStatus();
  }
  if (changed.status().code() == StatusCode::kInternal) Push(decider.Recover());
  return changed.status();
}

void Brain::NoteTold(ContainerRecord& record) {
  record.told_at = store.Tick();
  if (!state_writer.keeps()) return;
  if (std::exchange(record.container.set_later.reported, false)) state_writer.MarkChanged(record);
}

void Brain::LookAgain(ContainerKey key) {
  const ContainerRecord* const record = store.Find(key);
  if (record == nullptr || !record->Placeable()) return;
  StatusOr<ContainerKeys> changed = decider.LookAgain(key);
  if (!changed.ok()) {
    log.Error("container {} keeps its placement, the policy failed to review it: {}",
              LogName(*record), Describe(changed.status()));
    Push(decider.Recover());
    return;
  }
  ReportMoves("the policy looked at a container again");
  Push(*std::move(changed));
}

void LookAgainTimers::Follow(const ContainerRecord& record) {
  using std::chrono::milliseconds;
  const ContainerKey key = record.container.key;
  const milliseconds duration = record.container.placement.look_again_after;
  const bool runs = record.container.state == ContainerState::kRunning && record.Placeable();
  if (!runs || duration.count() == 0) {
    if (!timers_.empty()) timers_.erase(key);
    return;
  }
  if (timers_.contains(key)) return;
  // The time since the start may be wrong: the clock may have been set back, or differ from the
  // runtime's.
  const Clock::Time now = clock_.Now();
  const milliseconds elapsed =
      std::clamp(std::chrono::duration_cast<milliseconds>(now - record.started_at.value_or(now)),
                 milliseconds(0), duration);
  timers_[key] = clock_.After(duration - elapsed, [this, key] {
    timers_.erase(key);
    due_(key);
  });
}

}  // namespace resmgr
