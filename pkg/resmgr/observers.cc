// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/observers.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "pkg/base/append.h"
#include "pkg/base/parse.h"
#include "pkg/resmgr/refusal_log.h"

namespace resmgr {
namespace {

// Limit of moves named in one line, since a change of many pools is reported in one line, too.
constexpr size_t kToldShifts = 4;
// Limit of containers found by one list that get a line each.
constexpr size_t kFoundOneByOne = 20;
// Limit of a refusal's text: the need, the free CPUs and some holders of the rest.
constexpr size_t kLongestText = 1024;
constexpr size_t kLongestName = 256;

std::string_view View(const fmt::memory_buffer& text) {
  return {text.data(), text.size()};
}

void AppendPlace(const Place& place, fmt::memory_buffer& text) {
  if (!place.cpus) {
    AppendParts(text, "any CPU");
  } else {
    AppendParts(text, place.cpus->size() == 1 ? "CPU " : "CPUs ", place.cpus->ToString());
    if (place.exclusive.empty()) {
      AppendParts(text, ", shared");
    } else if (place.exclusive == *place.cpus) {
      AppendParts(text, ", exclusive");
    } else {
      AppendParts(text, ", of which ", place.exclusive.ToString(),
                  place.exclusive.size() == 1 ? " is exclusive" : " are exclusive");
    }
  }
  if (place.mems) {
    AppendParts(text, place.mems->size() == 1 ? ", memory node " : ", memory nodes ",
                place.mems->ToString());
  }
}

template <typename Set>
std::string ListOf(const std::optional<Set>& set) {
  return set ? set->ToString() : "any";
}

// Appends "ns/pod/main" between two other texts. Names need no escaping, since the logger escapes
// control characters.
void AppendName(std::string_view before, const Pod& pod, const Container& container,
                std::string_view after, fmt::memory_buffer& text) {
  constexpr std::string_view kSlash = "/";
  if (pod.namespace_name.size() + pod.name.size() + container.name.size() <= kLongestName) {
    AppendParts(text, before, pod.namespace_name, kSlash, pod.name, kSlash, container.name, after);
  } else {
    AppendParts(text, before, Printable(FullName(pod, container.name), kLongestName), after);
  }
}

// "2 shared containers 0-1 -> 0"
void AppendShift(const Snapshot& snapshot, const Shift& shift, fmt::memory_buffer& text) {
  const Container* const first = snapshot.FindContainer(shift.first);
  const bool shares = shift.from.exclusive.empty() && shift.to.exclusive.empty();
  if (shift.containers > 1 || first == nullptr) {
    AppendParts(text, std::to_string(shift.containers), " shared containers");
  } else {
    const Pod* const pod = snapshot.FindPod(first->pod_id);
    const std::string_view what = shares ? "shared container " : "container ";
    if (pod != nullptr) {
      AppendName(what, *pod, *first, "", text);
    } else {
      AppendParts(text, what);
    }
  }
  if (shares && shift.from.cpus != shift.to.cpus) {
    AppendParts(text, " ", ListOf(shift.from.cpus), " -> ", ListOf(shift.to.cpus));
  } else if (!shares) {
    AppendParts(text, " ");
    AppendPlace(shift.from, text);
    AppendParts(text, " -> ");
    AppendPlace(shift.to, text);
  }
  if (shares && shift.from.mems != shift.to.mems) {
    AppendParts(text, ", memory nodes ", ListOf(shift.from.mems), " -> ", ListOf(shift.to.mems));
  }
}

void AppendOthers(const Observer::Act& act, fmt::memory_buffer& text) {
  size_t told = 0;
  for (const Shift& shift : act.others) {
    if (shift.first == act.container.key) continue;
    if (told == kToldShifts) {
      AppendParts(text, ", and more");
      return;
    }
    AppendParts(text, told++ == 0 ? "; moved " : ", ");
    AppendShift(act.snapshot, shift, text);
  }
}

std::string NameIn(const Observer::Act& act) {
  return Printable(FullName(act.pod, act.container.name));
}

}  // namespace

std::string Describe(const Place& place) {
  fmt::memory_buffer text;
  AppendPlace(place, text);
  return fmt::to_string(text);
}

fmt::memory_buffer& LogObserver::Begin() {
  line_.clear();
  return line_;
}

fmt::memory_buffer& LogObserver::Begin(std::string_view what, const Act& act) {
  fmt::memory_buffer& text = Begin();
  AppendName(what, act.pod, act.container, ": ", text);
  return text;
}

const std::string& LogObserver::TextOf(const Place& place) {
  if (text_of_place_.empty() || place != place_) {
    text_of_place_ = Describe(place);
    place_ = place;
  }
  return text_of_place_;
}

void LogObserver::OnPlaced(const Act& act) {
  if (!log_.Enabled(LogLevel::kInfo)) return;
  fmt::memory_buffer& text = Begin("placed ", act);
  AppendParts(text, TextOf(Place::Of(act.container.placement)), " (", act.policy.name(), ")");
  AppendOthers(act, text);
  log_.Text(LogLevel::kInfo, View(text));
  LogCandidates(act);
}

void LogObserver::LogCandidates(const Act& act) {
  if (!log_.Enabled(LogLevel::kDebug)) return;
  log_.Debug("{}: {}", NameIn(act), Printable(act.container.placement.reason, kLongestText));
  for (const std::string& candidate : act.policy.Explain(act.container.key))
    log_.Debug("  {}", Printable(candidate, kLongestText));
}

void LogObserver::OnRefused(const Act& act, const Status& why) {
  log_.Warn("refused {}{}: {}", act.why.empty() ? "" : fmt::format("{} of ", act.why), NameIn(act),
            Printable(Message(why), kLongestText));
}

void LogObserver::OnUpdated(const Act& act) {
  const Place to = Place::Of(act.container.placement);
  const bool moved = act.from != to;
  const LogLevel level = moved ? LogLevel::kInfo : LogLevel::kDebug;
  if (!log_.Enabled(level)) return;
  fmt::memory_buffer& text = Begin(moved ? "moved " : "kept ", act);
  if (moved) {
    AppendPlace(act.from, text);
    AppendParts(text, " -> ");
  }
  AppendPlace(to, text);
  AppendParts(text, " (its resources changed)");
  AppendOthers(act, text);
  log_.Text(level, View(text));
  LogCandidates(act);
}

void LogObserver::OnMoved(const Act& act, const Shift& shift) {
  if (!log_.Enabled(LogLevel::kInfo)) return;
  fmt::memory_buffer& text = Begin();
  AppendParts(text, "moved ");
  AppendShift(act.snapshot, shift, text);
  AppendParts(text, " (", act.why, ")");
  log_.Text(LogLevel::kInfo, View(text));
}

void LogObserver::OnReleased(const Act& act) {
  if (!log_.Enabled(LogLevel::kInfo)) return;
  fmt::memory_buffer& text = Begin("released ", act);
  AppendParts(text, TextOf(act.from), " (", act.why, ")");
  AppendOthers(act, text);
  log_.Text(LogLevel::kInfo, View(text));
}

void LogObserver::LogFound(std::string_view what, std::span<const Found> all,
                           std::string_view why) {
  const bool many = all.size() > kFoundOneByOne;
  if (many && log_.Enabled(LogLevel::kInfo)) {
    CpuSet exclusive;
    for (const Found& found : all)
      exclusive |= found.place.exclusive;
    const auto alone = std::ranges::count_if(
        all, [](const Found& found) { return !found.place.exclusive.empty(); });
    log_.Info("{}{} containers: {} with exclusive CPUs{}{} ({})", what, all.size(), alone,
              alone > 0 ? " " : "", exclusive.ToString(), why);
  }
  const LogLevel level = many ? LogLevel::kDebug : LogLevel::kInfo;
  if (!log_.Enabled(level)) return;
  for (const Found& found : all) {
    fmt::memory_buffer& text = Begin(what, found.act);
    AppendPlace(found.place, text);
    AppendParts(text, " (", found.why, ")");
    log_.Text(level, View(text));
  }
}

void LogObserver::OnAdopted(std::span<const Act> acts) {
  const std::string_view policy = acts.front().policy.name();
  std::vector<Found> adopted;
  for (const Act& act : acts)
    adopted.push_back({act, Place::Of(act.container.placement), policy});
  LogFound("adopted ", adopted, policy);
}

void LogObserver::OnFoundEnded(std::span<const Act> acts) {
  std::vector<Found> ended;
  for (const Act& act : acts)
    ended.push_back({act, act.from, act.why});
  LogFound("released ", ended, "they ended or are gone");
}

void LogObserver::OnStartForced(const Act& act, std::string_view reason) {
  log_.Warn("container {} is started anyway, {}", NameIn(act), Printable(reason, kLongestText));
}

void LogObserver::OnPushed(const Act& act) {
  if (!log_.Enabled(LogLevel::kDebug)) return;
  log_.Debug("the runtime moved {}: {}", NameIn(act), Describe(Place::Of(act.container.placement)));
}

// Only the first of repeated failures with the same cause is a warning; the others are debug lines.
void LogObserver::OnFailed(const Act& act, const Status& why) {
  const auto [last, first] = failed_.try_emplace(act.container.key, why);
  const bool news = first || last->second != why;
  last->second = why;
  const LogLevel level = news ? LogLevel::kWarn : LogLevel::kDebug;
  if (!log_.Enabled(level)) return;
  log_.Text(level, fmt::format("cannot update container {}: {}; what to do: {}", NameIn(act),
                               resmgr::Describe(why), UpdateRemedy(act.pod, act.container, why)));
}

void LogObserver::OnRecovered(const Act& act) {
  if (failed_.erase(act.container.key) == 0) return;
  log_.Info("the runtime updates container {} again", NameIn(act));
}

void LogObserver::OnRemoved(const Act& act) {
  failed_.erase(act.container.key);
}

}  // namespace resmgr
