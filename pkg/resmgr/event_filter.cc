// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/event_filter.h"

#include <algorithm>
#include <utility>

namespace resmgr {

EventFilter::EventFilter(EventLoop& loop, ContainerStore& store, std::function<void()> look,
                         Options options)
    : loop_(loop), store_(store), look_(std::move(look)), options_(options) {}

void EventFilter::Add(const ContainerEvent& event) {
  TakeName(event);
  if (!IsNews(event)) return;
  if (pending_.size() < options_.most) {
    pending_.insert(event);
  } else {
    too_many_ = true;
  }
  if (timer_ == nullptr) timer_ = loop_.After(options_.pause, [this] { OnTimer(); });
}

void EventFilter::Clear() {
  pending_.clear();
  too_many_ = false;
  timer_.reset();
}

void EventFilter::OnTimer() {
  timer_.reset();
  const std::set<ContainerEvent> events = std::exchange(pending_, {});
  // The answer to the creation has told the id meanwhile.
  for (const ContainerEvent& event : events)
    TakeName(event);
  const bool news =
      std::exchange(too_many_, false) ||
      std::ranges::any_of(events, [this](const auto& event) { return IsNews(event); });
  if (news) look_();
}

void EventFilter::TakeName(const ContainerEvent& event) {
  ContainerRecord* const record =
      event.name.empty() ? nullptr : store_.FindById(ContainerId(event.id));
  if (record != nullptr && record->container.name != event.name) store_.Rename(*record, event.name);
}

// Whether it is not known yet. Runtimes tell of pod sandboxes, too, as if they were containers.
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
    // An audit looks at what is in force, and no list tells a name sooner.
    case ContainerEvent::Kind::kUpdated:
    case ContainerEvent::Kind::kRenamed:
      return false;
  }
  return true;
}

}  // namespace resmgr
