// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

namespace resmgr {

// Whether the daemon is alive and at work, for /healthz and /readyz. Thread-safe: the event loop
// sets the state, the threads of the HTTP server read it.
class Health {
 public:
  using Clock = std::chrono::steady_clock;

  // The event loop counts as healthy for `patience` after each beat.
  explicit Health(Clock::duration patience = std::chrono::seconds(10)) : patience_(patience) {}

  // Called by the event loop while it is at work.
  void Beat(Clock::time_point now = Clock::now()) { last_beat_.store(now); }
  // Sets the reason why the daemon cannot serve at present; "" if it can.
  void SetNotReady(std::string why);

  // "", or the problem. There is none before the first beat.
  std::string Sickness(Clock::time_point now = Clock::now()) const;
  std::string WhyNotReady() const;

 private:
  const Clock::duration patience_;
  std::atomic<Clock::time_point> last_beat_{Clock::time_point{}};
  mutable std::mutex mutex_;
  std::string not_ready_ = "it starts";
};

}  // namespace resmgr
