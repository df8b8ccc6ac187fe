// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/history.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/append.h"

namespace resmgr {
namespace {

// Limit of entries for moves by one decision: the moves that one container causes differ only by
// pool.
constexpr size_t kKeptShifts = 16;

// Number of entries that are searched for the same error.
constexpr size_t kEntriesLookedAt = 16;

// "namespace/pod/name" with long parts shortened, so that it always has three parts.
void SetName(std::string& text, const Pod& pod, std::string_view name) {
  constexpr size_t kLongestPart = History::kLongestText / 3;
  AssignParts(text, std::string_view(pod.namespace_name).substr(0, kLongestPart), "/",
              std::string_view(pod.name).substr(0, kLongestPart), "/",
              name.substr(0, kLongestPart));
}

constexpr StateStore::PodNote kNote = StateStore::PodNote::kRefusal;

History::Entry EntryOf(std::string_view name, const SavedRefusal& saved) {
  return {.time = saved.time,
          .event = History::Event::kRefused,
          .container = std::string(name),
          .pod = saved.pod,
          .place = std::make_shared<const Place>(Place{saved.cpus, saved.mems, saved.exclusive}),
          .reason = std::make_shared<const std::string>(saved.reason),
          .asked = std::make_shared<const History::Asked>(
              History::Asked{.qos = saved.qos, .requirements = saved.requirements}),
          .error = saved.error};
}

}  // namespace

History::History(size_t capacity, WallClock now)
    : capacity_(std::max<size_t>(capacity, 1)), now_(std::move(now)) {}

std::vector<const History::Entry*> History::Last(size_t most) const {
  const size_t count = std::min(most, ring_.size());
  std::vector<const Entry*> last;
  last.reserve(count);
  // Until the ring is full, `next_` is its size.
  for (size_t i = count; i > 0; --i)
    last.push_back(&ring_[(next_ + ring_.size() - i) % ring_.size()]);
  return last;
}

// 0 is the newest entry; `steps` must be less than the number of entries.
History::Entry& History::Back(size_t steps) {
  return ring_[(next_ + ring_.size() - 1 - steps) % ring_.size()];
}

std::string History::NameOf(const Pod& pod, std::string_view container) {
  std::string name;
  SetName(name, pod, container);
  return name;
}

History::Entry& History::Add(Event event, const Pod& pod, std::string_view container,
                             const Place& place, std::string_view reason) {
  if (*place_ != place) place_ = std::make_shared<const Place>(place);
  std::shared_ptr<const std::string>& kept = reasons_.at(static_cast<size_t>(event));
  reason = reason.substr(0, kLongestText);
  if (kept == nullptr || *kept != reason) kept = std::make_shared<const std::string>(reason);

  Entry& entry = Next();
  entry.time = now_();
  entry.event = event;
  entry.containers = 1;
  SetName(entry.container, pod, container);
  entry.pod = pod.id;
  entry.place = place_;
  entry.reason = kept;
  entry.asked.reset();
  entry.error.clear();
  return entry;
}

// A new entry, or the oldest one if the ring is full.
History::Entry& History::Next() {
  if (next_ == capacity_) next_ = 0;
  if (next_ == ring_.size()) ring_.emplace_back();
  return ring_[next_++];
}

void History::Restore(const Entry& refused) {
  Next() = refused;
}

void History::AddShift(const Act& act, const Shift& shift, std::string_view reason) {
  const Container* const first = act.snapshot.FindContainer(shift.first);
  const Pod* const pod = first == nullptr ? nullptr : act.snapshot.FindPod(first->pod_id);
  const Container& container = pod == nullptr ? act.container : *first;
  // A container with exclusive CPUs that is alone in the shift is shown with all of its CPUs, since
  // the shift has only the shared ones.
  const bool whole = pod == nullptr || shift.containers == 1;
  Entry& entry = Add(Event::kMoved, pod == nullptr ? act.pod : *pod, container.name,
                     whole ? Place::Of(container.placement) : shift.to, reason);
  entry.containers = static_cast<uint32_t>(shift.containers);
}

void History::AddOthers(const Act& act) {
  size_t kept = 0;
  std::string reason;
  for (const Shift& shift : act.others) {
    if (shift.first == act.container.key) continue;
    if (kept++ == kKeptShifts) break;
    if (reason.empty()) reason = "for the sake of " + FullName(act.pod, act.container.name);
    AddShift(act, shift, reason);
  }
}

void History::OnPlaced(const Act& act) {
  AddDecided(Event::kPlaced, act);
  AddOthers(act);
}

void History::AddDecided(Event event, const Act& act) {
  const Placement& placement = act.container.placement;
  Add(event, act.pod, act.container.name, Place::Of(placement), placement.reason);
}

void History::AddError(Event event, const Act& act, std::string_view error) {
  const std::string name = NameOf(act.pod, act.container.name);
  const std::string_view kept = error.substr(0, kLongestText);
  const size_t end = std::min(kEntriesLookedAt, ring_.size());
  for (size_t i = 0; i < end; ++i) {
    const Entry& known = Back(i);
    if (known.event != event || known.container != name || known.error != kept) continue;
    for (size_t j = i; j > 0; --j)
      std::swap(Back(j), Back(j - 1));
    Back(0).time = now_();
    Back(0).pod = act.pod.id;
    return;
  }
  Add(event, act.pod, act.container.name, Place::Of(act.container.placement), act.why).error = kept;
}

void History::OnRefused(const Act& act, const Status& why) {
  AddError(Event::kRefused, act, Message(why));
  const Asked asked = {.qos = act.pod.qos, .requirements = act.container.requirements};
  Entry& entry = Back(0);
  if (entry.asked == nullptr || *entry.asked != asked) {
    entry.asked = std::make_shared<const Asked>(asked);
  }
}

void History::OnUpdated(const Act& act) {
  if (act.from != Place::Of(act.container.placement)) {
    AddDecided(Event::kMoved, act);
  }
  AddOthers(act);
}

void History::OnMoved(const Act& act, const Shift& shift) {
  AddShift(act, shift, act.why);
}

void History::OnReleased(const Act& act) {
  Add(Event::kReleased, act.pod, act.container.name, act.from, act.why);
  AddOthers(act);
}

void History::OnAdopted(std::span<const Act> acts) {
  for (const Act& act : acts)
    AddDecided(Event::kAdopted, act);
}

void History::OnFoundEnded(std::span<const Act> acts) {
  for (const Act& act : acts)
    OnReleased(act);
}

void History::OnStartForced(const Act& act, std::string_view reason) {
  AddError(Event::kLetThrough, act, reason);
}

void History::OnFailed(const Act& act, const Status& why) {
  AddError(Event::kFailed, act, Describe(why));
}

void History::OnWritten(const Act& act, const Status& why) {
  AddError(Event::kWritten, act, Describe(why));
}

std::string_view ToString(History::Event event) {
  constexpr std::array<std::string_view, History::kEvents> kNames = {
      "placed", "adopted", "refused", "moved", "released", "failed", "let through", "written"};
  return kNames.at(static_cast<size_t>(event));
}

RefusalNotes::RefusalNotes(StateStore& state, History& history) : state_(state), history_(history) {
  std::vector<History::Entry> kept;
  std::vector<std::string> unusable;
  state_.ForEachNote(kNote, [&](std::string_view name, std::string_view text) {
    const StatusOr<SavedRefusal> saved = DecodeRefusal(text);
    const bool whole = std::ranges::count(name, '/') == 2;
    if (saved.ok() && whole) {
      kept.push_back(EntryOf(name, *saved));
    } else {
      unusable.emplace_back(name);
    }
  });
  for (const std::string& name : unusable)
    state_.EraseNote(kNote, PodSandboxId(name));
  std::ranges::sort(kept, {}, [](const History::Entry& entry) {
    return std::pair(entry.time, std::string_view(entry.container));
  });
  for (const History::Entry& entry : kept) {
    history.Restore(entry);
    names_.push_back(entry.container);
  }
  while (names_.size() > kMost)
    Forget(names_.begin());
}

void RefusalNotes::OnRefused(const Act& /*act*/, const Status& /*why*/) {
  const History::Entry& entry = *history_.Last(1).front();
  std::erase(names_, entry.container);
  names_.push_back(entry.container);
  if (names_.size() > kMost) Forget(names_.begin());
  state_.PutNote(kNote, PodSandboxId(entry.container),
                 EncodeRefusal({.time = entry.time,
                                .pod = entry.pod,
                                .qos = entry.asked->qos,
                                .requirements = entry.asked->requirements,
                                .reason = *entry.reason,
                                .error = entry.error,
                                .cpus = entry.place->cpus,
                                .mems = entry.place->mems,
                                .exclusive = entry.place->exclusive}));
  state_.Commit();
}

void RefusalNotes::OnPlaced(const Act& act) {
  if (names_.empty()) return;
  const auto name = std::ranges::find(names_, History::NameOf(act.pod, act.container.name));
  if (name == names_.end()) return;
  Forget(name);
  state_.Commit();
}

void RefusalNotes::Forget(std::list<std::string>::iterator name) {
  state_.EraseNote(kNote, PodSandboxId(*name));
  names_.erase(name);
}

}  // namespace resmgr
