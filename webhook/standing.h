// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

namespace resmgr::webhook {

// What the server knows of a connection when it has to close one for another one's sake.
struct Standing {
  using Clock = std::chrono::steady_clock;

  bool reviewed = false;  // a review was answered on it
  bool waiting = true;    // for a request, or for the end of the connection
  // When the last review was answered, else when the connection came.
  Clock::time_point proven_at = Clock::now();
  size_t body_room = 0;  // bytes that are set aside for the body that is being read
  Clock::time_point body_since{};
  bool closed = false;  // its end is under way
};

// Whether `a` is the one to close: first those on which no review was answered, then those that
// wait for a request, then those that are at work on one; among equals the one that showed its use
// the longest ago. API servers send reviews within milliseconds, so theirs is never the oldest.
bool LessUseful(const Standing& a, const Standing& b);

}  // namespace resmgr::webhook
