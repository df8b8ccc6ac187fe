// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <unordered_map>

#include "pkg/model/snapshot.h"
#include "pkg/policy/container_use.h"
#include "pkg/usage/usage_figures.h"

namespace resmgr {

// Moving averages of what containers use, from a sequence of figures. Adding a sample costs little,
// so it may be done on the event loop. Thread-compatible.
class UseAverages {
 public:
  // The weight of older samples falls: one of this age has a third of the weight of the newest one.
  // Until this time has passed, all samples have equal weights.
  static constexpr std::chrono::seconds kReach{60};

  // If the figures do not continue the last ones, the averages begin anew.
  void Add(const UsageFigures& figures);
  // Begins anew: ignores samples that began before this time.
  void BeginAt(std::chrono::steady_clock::time_point begin);
  void Clear() { BeginAt({}); }

  // The time that the averaged samples cover.
  std::chrono::milliseconds elapsed() const;
  // The averages of the snapshot's running containers, as far as they were measured.
  policy::MeasuredUse Of(const Snapshot& snapshot) const;

 private:
  using Seconds = std::chrono::duration<double>;
  struct Mean {
    double value = 0;
    Seconds time{};

    void Add(double sample, Seconds length);
  };
  struct Entry {
    Mean cpus{};
    Mean pressure{};
    bool seen = false;
  };

  std::unordered_map<std::string, Entry> entries_;  // by container id
  std::chrono::steady_clock::time_point begin_{};
  std::chrono::steady_clock::time_point last_{};
  std::chrono::system_clock::time_point until_{};
  Seconds elapsed_{};
};

}  // namespace resmgr
