// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/history.h"

#include <algorithm>
#include <utility>

namespace resmgr {
namespace {

// Moves for one container's sake differ by pool; of more than these the plan is told by no list.
constexpr size_t kKeptShifts = 16;

// How many entries back the same error is looked for.
constexpr size_t kEntriesLookedAt = 16;

// Reuses the entry's memory.
void Set(std::string& text, std::string_view value) {
  text.assign(value.substr(0, History::kLongestText));
}

void SetName(std::string& text, const Pod& pod, std::string_view name) {
  text.assign(pod.namespace_name).append("/").append(pod.name).append("/").append(name);
  if (text.size() > History::kLongestText) text.resize(History::kLongestText);
}

}  // namespace

History::History(size_t capacity, WallClock now)
    : capacity_(std::max<size_t>(capacity, 1)), now_(std::move(now)) {}

std::vector<const History::Entry*> History::Last(size_t most) const {
  const size_t count = std::min(most, ring_.size());
  std::vector<const Entry*> last;
  last.reserve(count);
  // Before it is full, `next_` is its size.
  for (size_t i = count; i > 0; --i)
    last.push_back(&ring_[(next_ + ring_.size() - i) % ring_.size()]);
  return last;
}

// 0 is the newest one; before the oldest one nothing may be asked for.
History::Entry& History::Back(size_t steps) {
  return ring_[(next_ + ring_.size() - 1 - steps) % ring_.size()];
}

History::Entry& History::Add(Event event, const Act& act) {
  if (next_ == capacity_) next_ = 0;
  if (next_ == ring_.size()) ring_.emplace_back();
  Entry& entry = ring_[next_++];
  entry.time = now_();
  entry.event = event;
  entry.containers = 1;
  SetName(entry.container, act.pod, act.container.name);
  entry.pod = act.pod.id;
  entry.place = Place::Of(act.container.placement);
  entry.reason.clear();
  entry.error.clear();
  return entry;
}

void History::AddShift(const Act& act, const Shift& shift, std::string_view reason) {
  Entry& entry = Add(Event::kMoved, act);
  if (const Container* const first = act.snapshot.FindContainer(shift.first)) {
    const Pod* const pod = act.snapshot.FindPod(first->pod_id);
    if (pod != nullptr) SetName(entry.container, *pod, first->name);
    entry.pod = first->pod_id;
    // Of a container that has CPUs of its own besides, the shift has the shared ones only.
    entry.place = shift.containers == 1 ? Place::Of(first->placement) : shift.to;
  }
  entry.containers = shift.containers;
  Set(entry.reason, reason);
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
  Set(Add(Event::kPlaced, act).reason, act.container.placement.reason);
  AddOthers(act);
}

void History::AddError(Event event, const Act& act, std::string_view error) {
  std::string name;
  SetName(name, act.pod, act.container.name);
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
  Entry& entry = Add(event, act);
  Set(entry.reason, act.why);
  Set(entry.error, error);
}

void History::OnRefused(const Act& act, const Status& why) {
  AddError(Event::kRefused, act, Message(why));
}

void History::OnUpdated(const Act& act) {
  if (act.from != Place::Of(act.container.placement)) {
    Set(Add(Event::kMoved, act).reason, act.container.placement.reason);
  }
  AddOthers(act);
}

void History::OnMoved(const Act& act, const Shift& shift) {
  AddShift(act, shift, act.why);
}

void History::OnReleased(const Act& act) {
  Entry& entry = Add(Event::kReleased, act);
  entry.place = act.from;
  Set(entry.reason, act.why);
  AddOthers(act);
}

void History::OnAdopted(std::span<const Act> acts) {
  for (const Act& act : acts)
    Set(Add(Event::kAdopted, act).reason, act.container.placement.reason);
}

void History::OnFoundEnded(std::span<const Act> acts) {
  for (const Act& act : acts)
    OnReleased(act);
}

void History::OnFailed(const Act& act, const Status& why) {
  AddError(Event::kFailed, act, Describe(why));
}

std::string_view ToString(History::Event event) {
  switch (event) {
    case History::Event::kPlaced:
      return "placed";
    case History::Event::kAdopted:
      return "adopted";
    case History::Event::kRefused:
      return "refused";
    case History::Event::kMoved:
      return "moved";
    case History::Event::kReleased:
      return "released";
    case History::Event::kFailed:
      return "failed";
  }
  return "";
}

}  // namespace resmgr
