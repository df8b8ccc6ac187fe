// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "agent/delivery.h"
#include "agent/event_object.h"
#include "agent/http.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

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
  bool updating_ = false;  // the request under way is not a creation
  bool more_ = false;      // occurrences arrived while a request was under way
  Delivery delivery_;
};

}  // namespace resmgr::agent
