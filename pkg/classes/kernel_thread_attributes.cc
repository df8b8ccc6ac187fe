// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdint>
#include <utility>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pkg/classes/scheduling_threads.h"

namespace resmgr {
namespace {

using SchedPolicy = SchedulerSettings::Policy;

// struct sched_attr of linux/sched/types.h, which glibc before 2.41 does not have, in its first
// size.
struct KernelAttributes {
  uint32_t size = sizeof(KernelAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;
  uint64_t deadline = 0;
  uint64_t period = 0;
};
static_assert(sizeof(KernelAttributes) == 48);

// SCHED_OTHER to SCHED_DEADLINE of linux/sched.h.
constexpr std::pair<SchedPolicy, uint32_t> kKernelPolicies[] = {
    {SchedPolicy::kOther, 0}, {SchedPolicy::kFifo, 1}, {SchedPolicy::kRoundRobin, 2},
    {SchedPolicy::kBatch, 3}, {SchedPolicy::kIdle, 5}, {SchedPolicy::kDeadline, 6},
};

// linux/ioprio.h: the class is above the priority.
constexpr int kIoClassShift = 13;
constexpr int kIoPriorityMask = (1 << kIoClassShift) - 1;
constexpr int kIoOfThread = 1;  // IOPRIO_WHO_PROCESS

int ResultOf(long result) {
  return result < 0 ? errno : 0;
}

}  // namespace

int KernelThreadAttributes::SetScheduler(pid_t thread, const SchedulerSettings& scheduler) {
  KernelAttributes attributes{.nice = scheduler.nice,
                              .priority = static_cast<uint32_t>(scheduler.priority),
                              .runtime = scheduler.runtime_ns,
                              .deadline = scheduler.deadline_ns,
                              .period = scheduler.period_ns};
  for (const auto& [policy, number] : kKernelPolicies)
    if (policy == scheduler.policy) attributes.policy = number;
  // The flags of the kernel are these enumerators as bits.
  for (const SchedulerSettings::Flag flag : scheduler.flags)
    attributes.flags |= uint64_t{1} << static_cast<unsigned>(flag);
  const int error = ResultOf(::syscall(SYS_sched_setattr, thread, &attributes, 0));
  if (error != 0) return error;
  // The kernel looks at the nice value of the usual policies alone.
  const bool separate = scheduler.policy == SchedPolicy::kIdle && scheduler.nice != 0;
  return separate ? ResultOf(::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), scheduler.nice))
                  : 0;
}

int KernelThreadAttributes::GetScheduler(pid_t thread, SchedulerSettings& scheduler) {
  KernelAttributes attributes;
  const int error =
      ResultOf(::syscall(SYS_sched_getattr, thread, &attributes, sizeof(attributes), 0));
  if (error != 0) return error;
  for (const auto& [policy, number] : kKernelPolicies)
    if (number == attributes.policy) scheduler.policy = policy;
  scheduler.nice = attributes.nice;
  if (scheduler.policy == SchedPolicy::kIdle) {
    errno = 0;
    const int nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(thread));
    if (errno == 0) scheduler.nice = nice;
  }
  scheduler.priority = static_cast<int32_t>(attributes.priority);
  scheduler.runtime_ns = attributes.runtime;
  scheduler.deadline_ns = attributes.deadline;
  scheduler.period_ns = attributes.period;
  return 0;
}

int KernelThreadAttributes::SetIoPriority(pid_t thread, const IoPriority& priority) {
  const int value = (static_cast<int>(priority.io_class) << kIoClassShift) | priority.priority;
  return ResultOf(::syscall(SYS_ioprio_set, kIoOfThread, thread, value));
}

int KernelThreadAttributes::GetIoPriority(pid_t thread, IoPriority& priority) {
  const long value = ::syscall(SYS_ioprio_get, kIoOfThread, thread);
  if (value < 0) return errno;
  priority.io_class = static_cast<IoPriority::Class>(value >> kIoClassShift);
  priority.priority = static_cast<int32_t>(value & kIoPriorityMask);
  return 0;
}

}  // namespace resmgr
