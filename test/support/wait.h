// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "pkg/sys/event_loop.h"

namespace resmgr::test {

// Longer than anything takes on a loaded machine.
inline constexpr std::chrono::seconds kWaitPatience{60};

// Runs the loop until the condition holds; false if it does not hold in time.
inline bool RunUntil(EventLoop& loop, const std::function<bool()>& condition,
                     std::chrono::milliseconds patience = kWaitPatience) {
  bool held = condition();
  const auto poll = loop.Every(std::chrono::milliseconds(1), [&] {
    held = condition();
    if (held) loop.Stop();
  });
  const auto limit = loop.After(patience, [&] { loop.Stop(); });
  if (!held) loop.Run();
  return held;
}

inline void RunFor(EventLoop& loop, std::chrono::milliseconds time) {
  const auto end = loop.After(time, [&] { loop.Stop(); });
  loop.Run();
}

// The same for a condition that other threads or processes bring about.
inline bool Eventually(const std::function<bool()>& condition,
                       std::chrono::milliseconds patience = kWaitPatience) {
  using std::chrono::steady_clock;
  constexpr steady_clock::duration kShortest = std::chrono::milliseconds(5);
  constexpr steady_clock::duration kLongest = std::chrono::milliseconds(250);
  const auto end = steady_clock::now() + patience;
  for (auto begin = steady_clock::now(); !condition(); begin = steady_clock::now()) {
    if (steady_clock::now() >= end) return false;
    // A condition that asks the daemon, as for its metrics, must not delay the awaited work: under
    // AddressSanitizer two thirds of a processor went into such questions for half a minute.
    const auto took = steady_clock::now() - begin;
    std::this_thread::sleep_for(std::max(std::clamp(took * 9, kShortest, kLongest), took));
  }
  return true;
}

}  // namespace resmgr::test
