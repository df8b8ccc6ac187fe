// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/log_observer.h"

#include <iterator>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

// A change of many pools at once is one line all the same.
constexpr size_t kToldShifts = 4;
// Of a refusal: the need, what is free and a few of those that have the rest.
constexpr size_t kLongestText = 1024;

using Buffer = fmt::memory_buffer;

template <typename... Args>
void Append(Buffer& text, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
}

void AppendPlace(const Place& place, Buffer& text) {
  if (!place.cpus) {
    Append(text, "any CPU");
  } else {
    Append(text, "CPU{} {}", place.cpus->size() == 1 ? "" : "s", place.cpus->ToString());
    if (place.exclusive.empty()) {
      Append(text, ", shared");
    } else if (place.exclusive == *place.cpus) {
      Append(text, ", exclusive");
    } else {
      Append(text, ", of which {} {} exclusive", place.exclusive.ToString(),
             place.exclusive.size() == 1 ? "is" : "are");
    }
  }
  if (place.mems) {
    Append(text, ", memory node{} {}", place.mems->size() == 1 ? "" : "s", place.mems->ToString());
  }
}

std::string ListOf(const std::optional<CpuSet>& cpus) {
  return cpus ? cpus->ToString() : "any";
}

void AppendName(const Pod& pod, const Container& container, Buffer& text) {
  Append(text, "{}", Printable(FullName(pod, container.name)));
}

// "2 shared containers 0-1 -> 0"
void AppendShift(const Snapshot& snapshot, const Shift& shift, Buffer& text) {
  const Container* const first = snapshot.FindContainer(shift.first);
  const bool shares = shift.from.exclusive.empty() && shift.to.exclusive.empty();
  if (shift.containers > 1 || first == nullptr) {
    Append(text, "{} shared containers", shift.containers);
  } else {
    const Pod* const pod = snapshot.FindPod(first->pod_id);
    Append(text, "{}", shares ? "shared container " : "container ");
    if (pod != nullptr) AppendName(*pod, *first, text);
  }
  if (shares && shift.from.cpus != shift.to.cpus) {
    Append(text, " {} -> {}", ListOf(shift.from.cpus), ListOf(shift.to.cpus));
  } else if (!shares) {
    Append(text, " ");
    AppendPlace(shift.from, text);
    Append(text, " -> ");
    AppendPlace(shift.to, text);
  }
  if (shares && shift.from.mems != shift.to.mems) {
    Append(text, ", memory nodes {} -> {}", shift.from.mems ? shift.from.mems->ToString() : "any",
           shift.to.mems ? shift.to.mems->ToString() : "any");
  }
}

void AppendOthers(const Observer::Act& act, Buffer& text) {
  size_t told = 0;
  for (const Shift& shift : act.others) {
    if (shift.first == act.container.key) continue;
    if (told == kToldShifts) {
      Append(text, ", and more");
      return;
    }
    Append(text, "{}", told++ == 0 ? "; moved " : ", ");
    AppendShift(act.snapshot, shift, text);
  }
}

std::string_view View(const Buffer& text) {
  return {text.data(), text.size()};
}

}  // namespace

std::string Describe(const Place& place) {
  Buffer text;
  AppendPlace(place, text);
  return fmt::to_string(text);
}

void LogObserver::OnPlaced(const Act& act) {
  if (!log_.Enabled(LogLevel::kInfo)) return;
  Buffer text;
  Append(text, "placed ");
  AppendName(act.pod, act.container, text);
  Append(text, ": ");
  AppendPlace(Place::Of(act.container.placement), text);
  Append(text, " ({})", act.policy.name());
  AppendOthers(act, text);
  log_.Info("{}", View(text));
  LogCandidates(act);
}

void LogObserver::LogCandidates(const Act& act) {
  if (!log_.Enabled(LogLevel::kDebug)) return;
  log_.Debug("{}: {}", Printable(FullName(act.pod, act.container.name)),
             Printable(act.container.placement.reason, kLongestText));
  for (const std::string& candidate : act.policy.Explain(act.container.key))
    log_.Debug("  {}", Printable(candidate, kLongestText));
}

void LogObserver::OnRefused(const Act& act, const Status& why) {
  log_.Warn("refused {}{}: {}", act.why.empty() ? "" : fmt::format("{} of ", act.why),
            Printable(FullName(act.pod, act.container.name)),
            Printable(Message(why), kLongestText));
}

void LogObserver::OnUpdated(const Act& act) {
  const Place to = Place::Of(act.container.placement);
  const bool moved = act.from != to;
  const LogLevel level = moved ? LogLevel::kInfo : LogLevel::kDebug;
  if (!log_.Enabled(level)) return;
  Buffer text;
  Append(text, "{} ", moved ? "moved" : "kept");
  AppendName(act.pod, act.container, text);
  Append(text, ": ");
  if (moved) {
    AppendPlace(act.from, text);
    Append(text, " -> ");
  }
  AppendPlace(to, text);
  Append(text, " (its resources changed)");
  AppendOthers(act, text);
  moved ? log_.Info("{}", View(text)) : log_.Debug("{}", View(text));
  LogCandidates(act);
}

void LogObserver::OnMoved(const Act& act, const Shift& shift) {
  if (!log_.Enabled(LogLevel::kInfo)) return;
  Buffer text;
  Append(text, "moved ");
  AppendShift(act.snapshot, shift, text);
  log_.Info("{} ({})", View(text), act.why);
}

void LogObserver::OnReleased(const Act& act) {
  if (!log_.Enabled(LogLevel::kInfo)) return;
  Buffer text;
  Append(text, "released ");
  AppendName(act.pod, act.container, text);
  Append(text, ": ");
  AppendPlace(act.from, text);
  Append(text, " ({})", act.why);
  AppendOthers(act, text);
  log_.Info("{}", View(text));
}

void LogObserver::OnPushed(const Act& act) {
  if (!log_.Enabled(LogLevel::kDebug)) return;
  log_.Debug("the runtime moved {}: {}", Printable(FullName(act.pod, act.container.name)),
             Describe(Place::Of(act.container.placement)));
}

void LogObserver::OnFailed(const Act& act, const Status& why) {
  log_.Warn("cannot update container {}: {}", Printable(FullName(act.pod, act.container.name)),
            resmgr::Describe(why));
}

}  // namespace resmgr
