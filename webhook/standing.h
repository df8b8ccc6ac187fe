// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

namespace resmgr::webhook {

// The properties of a connection that decide whether it is closed for the sake of another one.
struct Standing {
  using Clock = std::chrono::steady_clock;

  bool reviewed = false;  // a review was answered on it
  bool waiting = true;    // for a request, or for the connection's end
  // The time of the last answered review, else of the connection.
  Clock::time_point proven_at = Clock::now();
  size_t body_room = 0;  // bytes reserved for the body that is being read
  Clock::time_point body_since{};
  bool closed = false;  // its end is under way
};

// Whether `a` is closed before `b`: first connections without an answered review, then those that
// wait for a request, then those with a request under way; among equals the one whose proven_at is
// oldest. API servers send reviews within milliseconds, so theirs is never the oldest.
bool LessUseful(const Standing& a, const Standing& b);

}  // namespace resmgr::webhook
