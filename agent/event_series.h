// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "agent/http.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

// An Event (core/v1, which kubelets of every version write) and the requests that write it. A
// value.
struct EventObject {
  using Time = std::chrono::system_clock::time_point;

  std::string event_namespace{};  // namespace of the object `about`; "default" for nodes
  std::string name{};             // unique in the namespace
  Json about{};                   // involvedObject
  std::string source{};           // the component
  std::string node{};             // where the component runs
  bool warning = false;           // false: a normal event
  std::string reason{};           // one word in CamelCase
  std::string message{};          // at the last occurrence; at most kLongestEventMessage bytes
  int64_t count = 1;              // number of occurrences
  Time first{};
  Time last{};

  // The request that creates the Event.
  HttpRequest Creation() const;
  // The request that changes count, message and time of the existing Event.
  HttpRequest Update() const;
};

// How often the request for an Event is tried: the number that client-go uses. With the usual waits
// the tries outlast the start of an API server.
inline constexpr int kEventTries = 12;

// `involvedObject` of a node's Events: its UID is its name, since `kubectl describe node` looks for
// that.
Json NodeOfEvent(const std::string& node);

// A name for a new Event, made as client-go does: unique as long as the clock advances. `subject`
// is the involved object's name; only its beginning is used.
std::string EventName(std::string_view subject, EventObject::Time now);

// Warnings of one kind about the node, as one Event in the namespace "default", where nodes' events
// are kept: the first occurrence creates it, later ones change its count, time and message. After
// the API server has dropped it (after an hour) a new one is created. Each Add makes at most one
// request. Thread-compatible.
class EventSeries {
 public:
  using WallClock = std::function<std::chrono::system_clock::time_point()>;

  EventSeries(HttpTransport& transport, Clock& timers, const std::string& node,
              std::string_view reason, Backoff::Options backoff, uint64_t seed, WallClock now);

  // Counts `times` more occurrences; the message describes the last one.
  void Add(const std::string& message, int times);

 private:
  void Send();
  void Sent(const StatusOr<HttpReply>& reply);

  const WallClock now_;
  EventObject event_;
  bool exists_ = false;    // as far as known
  bool updating_ = false;  // the request under way is an update
  bool more_ = false;      // occurrences arrived while a request was under way
  Delivery delivery_;
};

}  // namespace resmgr::agent
