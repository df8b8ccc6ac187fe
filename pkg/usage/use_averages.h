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
  // A sample of this age counts a third; until this time has passed, all samples count equally.
  static constexpr std::chrono::seconds kReach{60};

  // Figures that do not follow on the last ones begin everything anew.
  void Add(const UsageFigures& figures);
  // Begins anew: samples that began before this do not count.
  void BeginAt(std::chrono::steady_clock::time_point begin);
  void Clear() { BeginAt({}); }

  // The time of all samples that count.
  std::chrono::milliseconds elapsed() const;
  // The running containers of the snapshot that were measured.
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
