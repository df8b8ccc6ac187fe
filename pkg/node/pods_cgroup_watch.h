// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"
#include "pkg/topology/machine.h"
#include "pkg/topology/pods_cgroup.h"

namespace resmgr {

// Checks periodically, off the loop, whether the cgroup of pods may still use all CPUs and memory
// nodes for containers. If it may not, containers cannot run there, and policies learn this only by
// a restart of the daemon. Loop's thread only.
class PodsCgroupWatch {
 public:
  static constexpr std::chrono::milliseconds kPeriod{60'000};

  struct Options {
    EventLoop& loop;
    std::shared_ptr<const Machine> machine;
    CgroupPlaces places{};
    std::vector<std::string> known{};  // problems found at the start
    // CPUs that are offline; that these are missing is not reported.
    std::function<CpuSet()> offline = [] { return CpuSet(); };
    std::chrono::milliseconds period = kPeriod;
  };
  // The loop must outlive this object.
  explicit PodsCgroupWatch(Options options);
  PodsCgroupWatch(const PodsCgroupWatch&) = delete;
  PodsCgroupWatch& operator=(const PodsCgroupWatch&) = delete;

  // Problems for an operator; each is a sentence.
  std::vector<std::string> problems() const;

 private:
  void Look();
  // `offline`: CPUs that were offline at some time of the look.
  void Compare(const CgroupSets& now, const CpuSet& offline);

  const Options options_;
  OffLoop off_loop_;
  std::string lost_;  // the problem; empty: none
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr
