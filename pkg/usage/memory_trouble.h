// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

#include "pkg/model/problem.h"
#include "pkg/usage/usage_figures.h"

namespace resmgr {

// Problems of containers that have too little memory. Their `since` is not set.

// Counts the processes killed for want of memory within the last hour, by the minute. A value type.
class KillsOfAnHour {
 public:
  static constexpr std::chrono::hours kHour{1};

  void Add(std::chrono::steady_clock::time_point at, uint64_t count);
  // The kills in the hour before `now`, to the minute; forgets older ones.
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

// The problem after a sample in which processes of the container were killed. Its message continues
// KillsText: whose limit or memory was the cause, and where the container's memory is.
Problem KilledForMemory(const ContainerFigures& container);

// As KilledForMemory, if only the pod, "namespace/pod", is known.
Problem KilledWithContainer(const std::string& pod);

// The problem of a container that often reaches memory.high, so that the kernel slows it down.
Problem ReachesMemoryHigh(const ContainerFigures& container, double times_a_minute);

}  // namespace resmgr
