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

// Warnings of one kind about the node, as one Event in the namespace "default", where those of
// nodes are: the first occurrence makes it, later ones change its count, time and message. One that
// the API server has forgotten (after an hour) is made anew. How often Add is called is how often
// the API server is asked, at most. Thread-compatible.
class EventSeries {
 public:
  using WallClock = std::function<std::chrono::system_clock::time_point()>;

  EventSeries(HttpTransport& transport, Clock& timers, const std::string& node,
              std::string_view reason, Backoff::Options backoff, uint64_t seed, WallClock now);

  // It happened so many times more; the message is of the last time.
  void Add(const std::string& message, int times);

 private:
  void Send();
  void Sent(const StatusOr<HttpReply>& reply);

  const WallClock now_;
  EventObject event_;
  bool exists_ = false;    // as far as known
  bool updating_ = false;  // what is under way is no creation
  bool more_ = false;      // came while something was under way
  Delivery delivery_;
};

}  // namespace resmgr::agent
