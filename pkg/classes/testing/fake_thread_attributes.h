// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>

#include "pkg/classes/container_threads.h"

namespace resmgr::test {

// Threads in memory. Thread-compatible.
class FakeThreadAttributes final : public ThreadAttributes {
 public:
  struct Thread {
    SchedulerSettings scheduler{};
    IoPriority io{};
  };

  std::map<pid_t, Thread> threads;
  int scheduler_error = 0;  // of each SetScheduler
  int io_error = 0;
  std::function<void(pid_t thread)> on_set;  // after each SetScheduler
  int sets = 0;
  // The runtimes of deadline may be as much of their periods together; more is EBUSY.
  uint64_t most_deadline_percent = 1'000;

  int SetScheduler(pid_t thread, const SchedulerSettings& scheduler) override {
    const bool admitted = DeadlinesBeside(thread) + DeadlineOf(scheduler) <= most_deadline_percent;
    return Set(thread, admitted ? scheduler_error : EBUSY, &Thread::scheduler, scheduler);
  }
  int GetScheduler(pid_t thread, SchedulerSettings& scheduler) override {
    return Get(thread, &Thread::scheduler, scheduler);
  }
  int SetIoPriority(pid_t thread, const IoPriority& priority) override {
    return Set(thread, io_error, &Thread::io, priority);
  }
  int GetIoPriority(pid_t thread, IoPriority& priority) override {
    return Get(thread, &Thread::io, priority);
  }

 private:
  static uint64_t DeadlineOf(const SchedulerSettings& scheduler) {
    return scheduler.policy == SchedulerSettings::Policy::kDeadline
               ? scheduler.runtime_ns * 100 / scheduler.period_ns
               : 0;
  }
  uint64_t DeadlinesBeside(pid_t thread) const {
    uint64_t percent = 0;
    for (const auto& [other, one] : threads)
      if (other != thread) percent += DeadlineOf(one.scheduler);
    return percent;
  }
  template <typename Value>
  int Set(pid_t thread, int error, Value Thread::*member, const Value& value) {
    ++sets;
    const auto found = threads.find(thread);
    if (found == threads.end()) return ESRCH;
    if (error != 0) return error;
    found->second.*member = value;
    if (on_set) on_set(thread);
    return 0;
  }
  template <typename Value>
  int Get(pid_t thread, Value Thread::*member, Value& value) const {
    const auto found = threads.find(thread);
    if (found == threads.end()) return ESRCH;
    value = found->second.*member;
    return 0;
  }
};

}  // namespace resmgr::test
