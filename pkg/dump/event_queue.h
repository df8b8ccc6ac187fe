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

// From the threads that see calls to the one that writes about them, in order, bounded in events
// and in bytes, with those of messages that are not complete yet. Never waits for room: a call one
// of whose events found none loses all that follow, and an event kLost tells how many did.
// Thread-safe.
class EventQueue {
 public:
  struct Limits {
    size_t events = 0;
    size_t bytes = 0;
  };

  explicit EventQueue(Limits limits) : limits_(limits) {}

  // An event of a call. After kEnd the queue knows nothing of the call any more. False when there
  // is no room, once for each call that it happens to.
  bool Push(Event event);
  // Room for a message that is being collected, of half of the bytes; false when there is none.
  // What was reserved is released before the event of the message is pushed.
  bool Reserve(size_t bytes);
  void Release(size_t bytes);
  // The call of this event, which found no room before it could be pushed, loses all that follows.
  // False when it does so already.
  bool Lose(const Event& event);
  // A change of settings: always finds room. Of those that wait only the latest kMaxSettings stay.
  void PushSettings(Event event);
  static constexpr size_t kMaxSettings = 16;

  // The next event, or nothing when there is none now.
  std::optional<Event> TryPop();
  // Waits for the next event; nothing once the queue is closed and empty, or at the deadline.
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;
  std::optional<Event> Pop(const Deadline& deadline = std::nullopt);
  // Closed and empty.
  bool ended();

  // Takes no more events.
  void Close();
  // Takes no more events and forgets those that it holds.
  void Abandon();
  // The consumer is done. WaitFinished returns false when that did not come true in time.
  void Finish();
  bool WaitFinished(std::chrono::milliseconds timeout);

 private:
  std::optional<Event> PopLocked();
  void AppendLocked(Event event);
  void AppendLostLocked();
  void DropOldestSettingsLocked();
  void LoseLocked(const Event& event);

  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable finished_changed_;
  std::deque<Event> events_;
  size_t bytes_ = 0;                     // of the events
  size_t reserved_ = 0;                  // for messages that are being collected
  size_t settings_ = 0;                  // of events_
  std::unordered_set<uint64_t> losing_;  // calls in flight that lost an event
  Event lost_;                           // of kind kLost, not yet in the queue
  bool waiting_ = false;                 // the consumer sleeps
  bool closed_ = false;
  bool finished_ = false;
};

}  // namespace resmgr::dump
