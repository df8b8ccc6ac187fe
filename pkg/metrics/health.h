// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

namespace resmgr {

// Whether the daemon is alive and at work, for /healthz and /readyz. Thread-safe: the event loop
// tells, the threads of the HTTP server ask.
class Health {
 public:
  using Clock = std::chrono::steady_clock;

  // The event loop is well for so long after each beat.
  explicit Health(Clock::duration patience = std::chrono::seconds(10)) : patience_(patience) {}

  // The event loop is at work.
  void Beat(Clock::time_point now = Clock::now()) { last_beat_.store(now); }
  // Why the daemon is of no use at present; "" where it is.
  void SetNotReady(std::string why);

  // "", or what is wrong. Before the first beat nothing is.
  std::string Sickness(Clock::time_point now = Clock::now()) const;
  std::string WhyNotReady() const;

 private:
  const Clock::duration patience_;
  std::atomic<Clock::time_point> last_beat_{Clock::time_point{}};
  mutable std::mutex mutex_;
  std::string not_ready_ = "it starts";
};

}  // namespace resmgr
