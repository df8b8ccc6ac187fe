// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/event_notes.h"

#include <algorithm>
#include <utility>

namespace resmgr {

EventNotes::EventNotes(EventLoop& loop, const ContainerStore& store, std::function<void()> look,
                       Options options)
    : loop_(loop), store_(store), look_(std::move(look)), options_(options) {}

void EventNotes::Note(const ContainerEvent& event) {
  if (!IsNews(event)) return;
  if (notes_.size() < options_.most) {
    notes_.insert(event);
  } else {
    too_many_ = true;
  }
  if (timer_ == nullptr) timer_ = loop_.After(options_.pause, [this] { OnTimer(); });
}

void EventNotes::Clear() {
  notes_.clear();
  too_many_ = false;
  timer_.reset();
}

void EventNotes::OnTimer() {
  timer_.reset();
  const std::set<ContainerEvent> notes = std::exchange(notes_, {});
  const bool news = std::exchange(too_many_, false) ||
                    std::ranges::any_of(notes, [this](const auto& note) { return IsNews(note); });
  if (news) look_();
}

// Whether it is not known yet. Runtimes tell of pod sandboxes, too, as if they were containers.
bool EventNotes::IsNews(const ContainerEvent& event) const {
  const ContainerRecord* const record = store_.FindById(ContainerId(event.id));
  const bool pod = store_.pods().contains(PodSandboxId(event.id));
  switch (event.kind) {
    case ContainerEvent::Kind::kUnknown:
      return true;
    case ContainerEvent::Kind::kCreated:
      return record == nullptr && !pod;
    case ContainerEvent::Kind::kStarted:
      if (record == nullptr) return !pod;
      return record->container.state == ContainerState::kCreated && !record->BeingStarted();
    case ContainerEvent::Kind::kStopped:
      return record != nullptr && record->container.state != ContainerState::kExited;
    case ContainerEvent::Kind::kDeleted:
      return record != nullptr || pod;
  }
  return true;
}

}  // namespace resmgr
