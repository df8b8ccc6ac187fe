// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/scheduling_threads.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string_view>
#include <utility>

#include "pkg/classes/cgroup_threads.h"
#include "pkg/sys/errno_status.h"

namespace resmgr {
namespace {

using SchedPolicy = SchedulerSettings::Policy;

// A container that makes threads faster than they are found would keep the worker busy.
constexpr int kMostThreadRounds = 4;

std::set<pid_t> ThreadsOf(const std::string& cgroup, bool v2, HostFiles& files) {
  const StatusOr<CgroupThreads> found = FindCgroupThreads(cgroup, v2, files);
  return found.ok() ? found->threads : std::set<pid_t>();
}

Status ThreadRefusal(int error, std::string_view what, const std::string& shown,
                     std::string_view hint) {
  return ErrnoStatus(error, fmt::format("the kernel refuses {} {}{}", what, shown, hint));
}

// The reason, as far as the error says it. The kernel admits deadlines for all CPUs of a scheduling
// domain together (kernel/sched/deadline.c).
std::string SchedulerHint(int error, const SchedulerSettings& scheduler, size_t have, size_t all) {
  if (error == EPERM)
    return "; it needs CAP_SYS_NICE, a kernel with CONFIG_RT_GROUP_SCHED lets no container have "
           "fifo and rr, and deadline needs the CPUs of a partition";
  if (error != EBUSY || scheduler.policy != SchedPolicy::kDeadline) return "";
  return fmt::format(
      "; {} of {} threads have it, and the runtimes of all together may be 95 % of their periods on"
      " each CPU (kernel.sched_rt_runtime_us)",
      have, all);
}

std::string ReadBackThread(pid_t thread, const SchedulerSettings& scheduler, const IoPriority& io,
                           ThreadAttributes& attributes) {
  SchedulerSettings has_scheduler;
  IoPriority has_io;
  const bool by_scheduler =
      scheduler.policy != SchedPolicy::kNone && attributes.GetScheduler(thread, has_scheduler) == 0;
  const bool by_io =
      io.io_class != IoPriority::Class::kNone && attributes.GetIoPriority(thread, has_io) == 0;
  return ShownSettings(by_scheduler ? has_scheduler : SchedulerSettings(),
                       by_io ? has_io : IoPriority());
}

}  // namespace

std::string ShownScheduler(const SchedulerSettings& scheduler) {
  constexpr std::array<std::pair<SchedPolicy, std::string_view>, 6> kNames = {{
      {SchedPolicy::kOther, "other"},
      {SchedPolicy::kFifo, "fifo"},
      {SchedPolicy::kRoundRobin, "rr"},
      {SchedPolicy::kBatch, "batch"},
      {SchedPolicy::kIdle, "idle"},
      {SchedPolicy::kDeadline, "deadline"},
  }};
  const auto* const name =
      std::ranges::find(kNames, scheduler.policy, &std::pair<SchedPolicy, std::string_view>::first);
  if (name == kNames.end()) return "none";
  std::string text(name->second);
  if (scheduler.priority != 0) text += fmt::format(" {}", scheduler.priority);
  if (scheduler.nice != 0) text += fmt::format(" nice {}", scheduler.nice);
  if (scheduler.policy == SchedPolicy::kDeadline) {
    text += fmt::format(" {}ns within {}ns of each {}ns", scheduler.runtime_ns,
                        scheduler.deadline_ns, scheduler.period_ns);
  }
  return text;
}

std::string ShownIoPriority(const IoPriority& priority) {
  switch (priority.io_class) {
    case IoPriority::Class::kRealTime:
      return fmt::format("rt {}", priority.priority);
    case IoPriority::Class::kBestEffort:
      return fmt::format("be {}", priority.priority);
    case IoPriority::Class::kIdle:
      return "idle";
    default:
      return "none";
  }
}

std::string ShownSettings(const SchedulerSettings& scheduler, const IoPriority& io) {
  std::string text;
  if (scheduler.policy != SchedPolicy::kNone) text = ShownScheduler(scheduler);
  if (io.io_class != IoPriority::Class::kNone)
    text += fmt::format("{}io {}", text.empty() ? "" : ", ", ShownIoPriority(io));
  return text;
}

ThreadsOutcome SetThreads(const std::string& cgroup, bool v2, const SchedulerSettings& scheduler,
                          const IoPriority& io, HostFiles& files, ThreadAttributes& attributes) {
  ThreadsOutcome outcome;
  std::set<pid_t> done;
  int scheduler_error = 0;
  int io_error = 0;
  // An error of a thread that has ended says nothing of the others.
  size_t scheduled = 0;
  const auto note = [](int error, int& first) {
    if (error != ESRCH && first == 0) first = error;
    return error == 0;
  };
  for (int round = 0; round < kMostThreadRounds; ++round) {
    bool any = false;
    for (const pid_t thread : ThreadsOf(cgroup, v2, files)) {
      if (!done.insert(thread).second) continue;
      any = true;
      bool set = true;
      if (scheduler.policy != SchedPolicy::kNone)
        set = note(attributes.SetScheduler(thread, scheduler), scheduler_error);
      if (set) ++scheduled;
      if (io.io_class != IoPriority::Class::kNone)
        set = note(attributes.SetIoPriority(thread, io), io_error) && set;
      if (set) ++outcome.threads;
    }
    if (!any) break;
  }
  if (scheduler_error != 0)
    outcome.scheduler =
        ThreadRefusal(scheduler_error, "the scheduler", ShownScheduler(scheduler),
                      SchedulerHint(scheduler_error, scheduler, scheduled, done.size()));
  if (io_error != 0)
    outcome.io = ThreadRefusal(io_error, "the I/O priority", ShownIoPriority(io),
                               io_error == EPERM ? "; it needs CAP_SYS_NICE" : "");
  if (!done.empty()) outcome.in_force = ReadBackThread(*done.begin(), scheduler, io, attributes);
  return outcome;
}

std::optional<std::string> ReadThreads(const std::string& cgroup, bool v2,
                                       const SchedulerSettings& scheduler, const IoPriority& io,
                                       HostFiles& files, ThreadAttributes& attributes) {
  const std::set<pid_t> threads = ThreadsOf(cgroup, v2, files);
  if (threads.empty()) return std::nullopt;
  return ReadBackThread(*threads.begin(), scheduler, io, attributes);
}

}  // namespace resmgr
