// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/event_filter.h"

#include <algorithm>
#include <utility>

namespace resmgr {

EventFilter::EventFilter(Clock& clock, ContainerStore& store, Acts acts, Options options)
    : clock_(clock), store_(store), acts_(std::move(acts)), options_(options) {}

void EventFilter::Add(const ContainerEvent& event) {
  const bool named = event.name.empty() || TakeName(event.id, event.name);
  if (!named && (names_.size() < options_.most || names_.contains(event.id))) {
    names_.insert_or_assign(event.id, event.name);
  }
  if (IsNews(event)) {
    if (pending_.size() < options_.most) {
      pending_.insert(event);
    } else {
      too_many_ = true;
    }
  }
  const bool waits = !pending_.empty() || !names_.empty();
  if (waits && timer_ == nullptr) timer_ = clock_.After(options_.pause, [this] { OnTimer(); });
}

void EventFilter::Clear() {
  pending_.clear();
  names_.clear();
  too_many_ = false;
  timer_.reset();
}

void EventFilter::OnTimer() {
  timer_.reset();
  // The answer to the creation has arrived meanwhile, so the id is known.
  for (const auto& [id, name] : std::exchange(names_, {}))
    TakeName(id, name);
  const std::set<ContainerEvent> events = std::exchange(pending_, {});
  const bool news =
      std::exchange(too_many_, false) ||
      std::ranges::any_of(events, [this](const auto& event) { return IsNews(event); });
  if (news) acts_.look();
}

// False where the container is not known. The text of an earlier event is of no use from then on.
bool EventFilter::TakeName(const std::string& id, const std::string& name) {
  ContainerRecord* const record = store_.FindById(ContainerId(id));
  if (record == nullptr) return false;
  names_.erase(id);
  if (record->container.name != name) acts_.rename(*record, name);
  return true;
}

// Whether the event reports something new. Runtimes also send events of pod sandboxes as if these
// were containers.
bool EventFilter::IsNews(const ContainerEvent& event) const {
  const ContainerRecord* const record = store_.FindById(ContainerId(event.id));
  const bool pod = store_.pods().contains(PodSandboxId(event.id));
  switch (event.kind) {
    case ContainerEvent::Kind::kUnknown:
      return true;
    case ContainerEvent::Kind::kCreated:
      return record == nullptr && !pod;
    case ContainerEvent::Kind::kStarted:
      if (record == nullptr) return !pod;
      return record->container.state != ContainerState::kRunning && !record->life.BeingStarted();
    case ContainerEvent::Kind::kStopped:
      return record != nullptr && record->container.state != ContainerState::kExited;
    case ContainerEvent::Kind::kDeleted:
      return record != nullptr || pod;
    // Audits compare the values in force, and a list would not report a name sooner.
    case ContainerEvent::Kind::kUpdated:
    case ContainerEvent::Kind::kRenamed:
      return false;
  }
  return true;
}

}  // namespace resmgr
