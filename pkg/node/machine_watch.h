// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pkg/sys/event_loop.h"
#include "pkg/sys/kernel_events.h"
#include "pkg/sys/off_loop.h"
#include "pkg/topology/cpuset_limits.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Finds out which CPUs are online, off the loop: once a second, and when the kernel announces a
// change. An administrator may take CPUs offline and put them back while containers run. Under
// cgroup v1, a CPU that was away between two looks counts as offline until the next look, because
// the kernel has taken it out of all cpusets; under cgroup v2 the kernel puts it back itself.
// Loop's thread only.
class OnlineWatch {
 public:
  static constexpr std::chrono::milliseconds kPeriod{1'000};

  struct Options {
    EventLoop& loop;
    std::shared_ptr<const Machine> machine;
    CgroupPlaces places{};
    // Called after each look with the machine's CPUs that cannot be used now.
    std::function<void(const CpuSet& offline)> look = [](const CpuSet&) {};
    std::chrono::milliseconds period = kPeriod;
    // False: looks only once in each period, and ignores announcements of the kernel.
    bool announced = true;
  };
  // The loop must outlive it.
  explicit OnlineWatch(Options options);
  OnlineWatch(const OnlineWatch&) = delete;
  OnlineWatch& operator=(const OnlineWatch&) = delete;

  // CPUs that were online when the machine was read, and cannot be used now: they are offline, or
  // they came back but the cgroup of pods may not use them, because cgroup v1 does not put them
  // back.
  const CpuSet& offline() const { return offline_; }
  // Called when the kernel announces that a CPU went offline or came online.
  void NoteEvent(const KernelEvent& event);
  // Problems for an operator; each is a sentence.
  std::vector<std::string> problems() const;

 private:
  struct Seen {
    StatusOr<CpuSet> online;
    CgroupSets pods{};  // set if CPUs were offline at the last look
    CpuSet passing{};   // CPUs that were away for a moment, so no cpuset has them any more
  };

  void Look();
  void Take(const Seen& seen);

  const Options options_;
  OffLoop off_loop_;
  CpuSet offline_;
  CpuSet withheld_;  // CPUs of `offline_` that are online
  std::string pods_cgroup_;
  CpuSet unknown_;  // CPUs that are online, but were not when the machine was read
  CpuSet passing_;  // CPUs announced as offline since the last look began
  bool unreadable_ = false;
  std::unique_ptr<KernelEvents> events_;
  EventLoop::HandlePtr timer_;
};

// "CPU 9 is", "CPUs 8-9 are".
std::string CpusAre(const CpuSet& cpus);

// Checks periodically, off the loop, whether the cgroup of pods still allows all CPUs and memory
// nodes for containers. If it does not, containers cannot run there, but policies learn this only
// when the daemon restarts. Loop's thread only.
class PodsCgroupWatch {
 public:
  static constexpr std::chrono::milliseconds kPeriod{60'000};

  struct Options {
    EventLoop& loop;
    std::shared_ptr<const Machine> machine;
    CgroupPlaces places{};
    std::vector<std::string> known{};  // problems found at the start
    // The offline CPUs: they are not reported as missing.
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
