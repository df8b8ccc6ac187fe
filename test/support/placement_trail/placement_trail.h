// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "pkg/topology/cpu_set.h"

namespace resmgr::test {

// The CPUs that each container may run on, by a name of the test's choice.
using Placements = std::map<std::string, CpuSet>;

// Writes down, all the time and from outside, the containers' CPUs, so that a test can check the
// states between the beginning of a change and its end. Thread-safe.
class PlacementTrail {
 public:
  // All containers of one instant. Called on the trail's thread.
  using Reader = std::function<Placements()>;

  explicit PlacementTrail(Reader read);

  // Everything seen since the last call, equal neighbours once, in order. The last one was read
  // after this was called, so it is never empty.
  std::vector<Placements> Take();

 private:
  void Run(const std::stop_token& stop);

  const Reader read_;
  std::mutex mutex_;
  std::condition_variable_any looked_;
  uint64_t looks_ = 0;
  std::vector<Placements> trail_;
  std::jthread thread_;  // last: it uses all of the above
};

// A policy's grant to a container: all its CPUs, and its exclusive ones among them.
struct Grant {
  CpuSet cpus;
  CpuSet own;

  friend bool operator==(const Grant&, const Grant&) = default;
};
using Grants = std::map<std::string, Grant>;

// The violations on the way from one policy to another, one line for each: while a container has
// either policy's grant, no other container may come onto its exclusive CPUs, and none may ever be
// without a CPU. Containers that shared before may leave one after the other.
std::vector<std::string> Violations(const std::vector<Placements>& trail, const Grants& before,
                                    const Grants& after);

// Containers that are not where the policy wants them, or not alone on exclusive CPUs: a line each.
std::vector<std::string> Differences(const Placements& now, const Grants& grants);

}  // namespace resmgr::test
