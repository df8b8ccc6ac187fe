// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

#include "pkg/model/problem.h"
#include "pkg/usage/usage_figures.h"

namespace resmgr {

// Sentences about containers for which memory is too small. They have no `since`.

// Processes that were killed for want of memory, by the minute, within the last hour. A value.
class KillsOfAnHour {
 public:
  static constexpr std::chrono::hours kHour{1};

  void Add(std::chrono::steady_clock::time_point at, uint64_t count);
  // Those of the hour before `now`, to the minute; forgets the others.
  uint64_t Count(std::chrono::steady_clock::time_point now);

 private:
  struct Minute {
    std::chrono::steady_clock::time_point begin{};
    uint64_t count = 0;
  };
  std::deque<Minute> minutes_;  // at most one for each minute of the hour
};

// "3 processes of NAME were killed for want of memory in the last hour".
std::string KillsText(const std::string& name, uint64_t kills);

// By the figures of a sample in which processes of the container were killed. The message is what
// follows KillsText: whose limit or memory was the cause, and where its memory is.
Problem KilledForMemory(const ContainerFigures& container);

// The same of a pod, "namespace/pod", of which the containers are not known.
Problem KilledWithContainer(const std::string& pod);

// The container reaches memory.high so often a minute, and the kernel slows it down.
Problem ReachesMemoryHigh(const ContainerFigures& container, double times_a_minute);

}  // namespace resmgr
