// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "pkg/dump/event.h"

namespace resmgr::dump {

// Passes events from the threads that see calls to the one that writes about them, in order,
// bounded in events and in bytes, incomplete messages included. Never waits for room: if an event
// of a call finds no room, all later ones of this call are dropped, too, and an event kLost has the
// number of such calls. Thread-safe.
class EventQueue {
 public:
  struct Limits {
    size_t events = 0;
    size_t bytes = 0;
  };

  explicit EventQueue(Limits limits) : limits_(limits) {}

  // Adds an event of a call. After kEnd the call is forgotten. False if there is no room, once for
  // each call that loses an event.
  bool Push(Event event);
  // Reserves up to half of the bytes for messages that are being collected; false if there is no
  // room. The reservation must be released before the message's event is pushed.
  bool Reserve(size_t bytes);
  void Release(size_t bytes);
  // Called for an event that found no room before it could be pushed: later events of its call are
  // dropped. False if the call has lost an event before, or the queue is closed.
  bool Lose(const Event& event);
  // Adds a change of settings, which always finds room. Only the latest kMaxSettings waiting ones
  // are kept.
  void PushSettings(Event event);
  // Adds a line of use. False if there is no room; kLost then counts the dropped line.
  bool PushUse(Event event);
  static constexpr size_t kMaxSettings = 16;

  // The next event, or nullopt if there is none now.
  std::optional<Event> TryPop();
  // Waits for the next event; nullopt once the queue is closed and empty, or at the deadline.
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;
  std::optional<Event> Pop(const Deadline& deadline = std::nullopt);
  // Whether the queue is closed and empty.
  bool ended();

  // Takes no more events.
  void Close();
  // Takes no more events and drops the queued ones.
  void Abandon();
  // The consumer calls Finish when it is done. WaitFinished waits for this call; false after the
  // timeout.
  void Finish();
  bool WaitFinished(std::chrono::milliseconds timeout);

 private:
  std::optional<Event> PopLocked();
  bool AppendIfRoomLocked(Event& event);
  void AppendLocked(Event event);
  void AppendLostLocked();
  bool HasLostLocked() const { return lost_.lost_calls > 0 || lost_.lost_use > 0; }
  void DropOldestSettingsLocked();
  void LoseLocked(const Event& event);

  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable finished_changed_;
  std::deque<Event> events_;
  size_t bytes_ = 0;                     // of queued events
  size_t reserved_ = 0;                  // for messages that are being collected
  size_t settings_ = 0;                  // number of settings in events_
  std::unordered_set<uint64_t> losing_;  // calls in flight that lost an event
  Event lost_;                           // losses that are not in the queue yet
  bool waiting_ = false;                 // the consumer sleeps
  bool closed_ = false;
  bool finished_ = false;
};

}  // namespace resmgr::dump
