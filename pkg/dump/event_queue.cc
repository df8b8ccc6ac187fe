// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/event_queue.h"

#include <algorithm>
#include <utility>

namespace resmgr::dump {

bool EventQueue::Push(Event event) {
  const std::lock_guard lock(mutex_);
  if (closed_) return true;
  if (!losing_.empty() && losing_.count(event.call) > 0) {
    if (event.Last()) losing_.erase(event.call);
    return true;
  }
  if (AppendIfRoomLocked(event)) return true;
  LoseLocked(event);
  return false;
}

bool EventQueue::Reserve(size_t bytes) {
  const std::lock_guard lock(mutex_);
  // The other half stays for complete events, so that the ends of calls find room.
  const bool fits = reserved_ + bytes <= limits_.bytes / 2;
  if (!fits || bytes_ + reserved_ + bytes > limits_.bytes) return false;
  reserved_ += bytes;
  return true;
}

void EventQueue::Release(size_t bytes) {
  const std::lock_guard lock(mutex_);
  reserved_ -= bytes;
}

bool EventQueue::Lose(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (closed_ || losing_.contains(event.call)) return false;
  LoseLocked(event);
  if (waiting_) changed_.notify_one();
  return true;
}

void EventQueue::PushSettings(Event event) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  // Under new rules the end of a call that lost an event may never be reported, so such calls are
  // forgotten now.
  losing_.clear();
  if (settings_ >= kMaxSettings) DropOldestSettingsLocked();
  ++settings_;
  AppendLocked(std::move(event));
}

bool EventQueue::PushUse(Event event) {
  const std::lock_guard lock(mutex_);
  if (closed_) return true;
  if (AppendIfRoomLocked(event)) return true;
  ++lost_.lost_use;
  if (waiting_) changed_.notify_one();
  return false;
}

void EventQueue::DropOldestSettingsLocked() {
  const auto oldest = std::find_if(events_.begin(), events_.end(), [](const Event& event) {
    return event.kind == Event::Kind::kSettings;
  });
  bytes_ -= oldest->Cost();
  events_.erase(oldest);
  --settings_;
}

std::optional<Event> EventQueue::TryPop() {
  const std::lock_guard lock(mutex_);
  return PopLocked();
}

std::optional<Event> EventQueue::Pop(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return closed_ || !events_.empty() || HasLostLocked(); };
  waiting_ = true;
  if (deadline) {
    changed_.wait_until(lock, *deadline, ready);
  } else {
    changed_.wait(lock, ready);
  }
  waiting_ = false;
  return PopLocked();
}

bool EventQueue::ended() {
  const std::lock_guard lock(mutex_);
  return closed_ && events_.empty() && !HasLostLocked();
}

void EventQueue::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void EventQueue::Abandon() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  events_.clear();
  settings_ = 0;
  bytes_ = 0;
  lost_ = Event();
  changed_.notify_all();
}

void EventQueue::Finish() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  finished_changed_.notify_all();
}

bool EventQueue::WaitFinished(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return finished_changed_.wait_for(lock, timeout, [this] { return finished_; });
}

std::optional<Event> EventQueue::PopLocked() {
  if (events_.empty()) AppendLostLocked();
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  bytes_ -= event.Cost();
  if (event.kind == Event::Kind::kSettings) --settings_;
  return event;
}

bool EventQueue::AppendIfRoomLocked(Event& event) {
  if (events_.size() >= limits_.events || bytes_ + reserved_ + event.Cost() > limits_.bytes) {
    return false;
  }
  AppendLostLocked();
  AppendLocked(std::move(event));
  return true;
}

void EventQueue::AppendLocked(Event event) {
  bytes_ += event.Cost();
  events_.push_back(std::move(event));
  if (waiting_) changed_.notify_one();
}

// Queues the event about losses behind all events that are in the queue and before the next one.
void EventQueue::AppendLostLocked() {
  if (!HasLostLocked()) return;
  lost_.kind = Event::Kind::kLost;
  lost_.wall_start = std::chrono::system_clock::now();
  AppendLocked(std::exchange(lost_, Event()));
}

void EventQueue::LoseLocked(const Event& event) {
  ++lost_.lost_calls;
  // The recording must forget the call. If the call lost its request the recording does not know
  // it, so these ids are never more than the requests that found room.
  if (event.kind != Event::Kind::kRequest && event.plan->record)
    lost_.cut_calls.push_back(event.call);
  if (!event.Last()) losing_.insert(event.call);
}

}  // namespace resmgr::dump
