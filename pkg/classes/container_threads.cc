// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/container_threads.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

constexpr size_t kMostThreads = 65'536;
constexpr int kMostDepth = 8;
constexpr size_t kMostCgroups = 1024;

constexpr std::array kControlPrefixes = {"cgroup.", "cpu.",     "cpuset.", "memory.", "io.",
                                         "pids.",   "hugetlb.", "rdma.",   "misc.",   "irq."};

bool IsControlFile(std::string_view name) {
  return std::ranges::any_of(kControlPrefixes,
                             [name](std::string_view prefix) { return name.starts_with(prefix); });
}

struct CgroupThreads {
  std::set<pid_t> threads{};
  // Some threads are outside of this process's PID namespace.
  bool unseen = false;
};

class ThreadFinder {
 public:
  ThreadFinder(const char* file, HostFiles& files) : file_(file), files_(files) {}

  Status Add(const std::string& cgroup, int depth) {
    if (++cgroups_ > kMostCgroups) return OkStatus();
    RESMGR_ASSIGN_OR_RETURN(const std::string text,
                            files_.Read(fmt::format("{}/{}", cgroup, file_)));
    for (const std::string_view line : Split(text, '\n')) {
      const std::optional<pid_t> thread = ParseId(Trim(line));
      found.unseen = found.unseen || thread == 0;
      if (thread.value_or(0) > 0) found.threads.insert(*thread);
      if (found.threads.size() >= kMostThreads) return OkStatus();
    }
    if (depth == kMostDepth) return OkStatus();
    // A cgroup that is removed meanwhile has no threads.
    for (const std::string& name : files_.List(cgroup)) {
      if (!IsControlFile(name) && name != file_)
        Add(fmt::format("{}/{}", cgroup, name), depth + 1).IgnoreError();
    }
    return OkStatus();
  }

  CgroupThreads found{};

 private:
  const char* const file_;
  HostFiles& files_;
  size_t cgroups_ = 0;
};

// The threads of the cgroup and of those below it, up to a limit. An error if the cgroup's own file
// cannot be read.
StatusOr<CgroupThreads> FindCgroupThreads(const std::string& cgroup, bool v2, HostFiles& files) {
  ThreadFinder finder(v2 ? "cgroup.threads" : "tasks", files);
  RESMGR_RETURN_IF_ERROR(finder.Add(cgroup, 0));
  return std::move(finder.found);
}

using SchedPolicy = SchedulerSettings::Policy;

// Limits the rounds for a container that makes threads faster than they are found.
constexpr int kMostThreadRounds = 4;

// Explains a refusal by the kernel, for errors with known causes. The kernel admits deadlines for
// all CPUs of a scheduling domain together (kernel/sched/deadline.c).
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

// "rt 0", "be 6".
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

std::string ReadBackThread(pid_t thread, const SchedulingClassConfig& wanted,
                           ThreadAttributes& attributes) {
  SchedulingClassConfig has;
  if (wanted.scheduler.policy == SchedPolicy::kNone ||
      attributes.GetScheduler(thread, has.scheduler) != 0)
    has.scheduler = {};
  if (wanted.io_priority.io_class == IoPriority::Class::kNone ||
      attributes.GetIoPriority(thread, has.io_priority) != 0)
    has.io_priority = {};
  return ShownSettings(has);
}

// The first version of struct sched_attr in linux/sched/types.h, which glibc has only since 2.41.
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

struct KnownPolicy {
  SchedPolicy policy;
  std::string_view name;
  uint32_t number;  // SCHED_OTHER to SCHED_DEADLINE of linux/sched.h
};
constexpr std::array<KnownPolicy, 6> kPolicies = {{
    {SchedPolicy::kOther, "other", 0},
    {SchedPolicy::kFifo, "fifo", 1},
    {SchedPolicy::kRoundRobin, "rr", 2},
    {SchedPolicy::kBatch, "batch", 3},
    {SchedPolicy::kIdle, "idle", 5},
    {SchedPolicy::kDeadline, "deadline", 6},
}};

// linux/ioprio.h: the class is in the bits above the priority.
constexpr int kIoClassShift = 13;
constexpr int kIoPriorityMask = (1 << kIoClassShift) - 1;
constexpr int kIoOfThread = 1;  // IOPRIO_WHO_PROCESS

int ResultOf(long result) {
  return result < 0 ? errno : 0;
}

}  // namespace

const std::string& CgroupOf(const ClassSubject& subject) {
  return subject.cgroup.empty() ? subject.cgroup_v1 : subject.cgroup;
}

StatusOr<std::set<pid_t>> ThreadsOfContainer(const ClassSubject& subject, HostFiles& files) {
  const std::string& cgroup = CgroupOf(subject);
  if (cgroup.empty()) return NotFound("the container has no cgroup");
  RESMGR_ASSIGN_OR_RETURN(CgroupThreads found,
                          FindCgroupThreads(cgroup, !subject.cgroup.empty(), files));
  // Threads of another PID namespace are listed as 0. Writing 0 would move the writing thread
  // itself.
  if (found.unseen) {
    return FailedPrecondition(
        "{} has threads that this daemon cannot see: it needs the host's PID namespace", cgroup);
  }
  return std::move(found.threads);
}

StatusOr<std::set<pid_t>> ReadTasks(const std::string& file, HostFiles& files) {
  RESMGR_ASSIGN_OR_RETURN(const std::string text, files.Read(file));
  std::set<pid_t> tasks;
  for (const std::string_view line : Split(text, '\n'))
    if (const std::optional<pid_t> task = ParseId(Trim(line)); task.value_or(0) > 0)
      tasks.insert(*task);
  return tasks;
}

StatusOr<bool> MoveTask(pid_t thread, const std::string& file, HostFiles& files) {
  const std::string text = fmt::format("{}", thread);
  const int error = files.Write(file, text);
  if (error != 0 && error != ESRCH) return ResctrlWriteError(error, file, text, files);
  return error == 0;
}

std::string ShownScheduler(const SchedulerSettings& scheduler) {
  const auto* const known = std::ranges::find(kPolicies, scheduler.policy, &KnownPolicy::policy);
  if (known == kPolicies.end()) return "none";
  std::string text(known->name);
  if (scheduler.priority != 0) text += fmt::format(" {}", scheduler.priority);
  if (scheduler.nice != 0) text += fmt::format(" nice {}", scheduler.nice);
  if (scheduler.policy == SchedPolicy::kDeadline) {
    text += fmt::format(" {}ns within {}ns of each {}ns", scheduler.runtime_ns,
                        scheduler.deadline_ns, scheduler.period_ns);
  }
  return text;
}

std::string ShownSettings(const SchedulingClassConfig& settings) {
  std::string text;
  if (settings.scheduler.policy != SchedPolicy::kNone) text = ShownScheduler(settings.scheduler);
  if (settings.io_priority.io_class != IoPriority::Class::kNone)
    text += fmt::format("{}io {}", text.empty() ? "" : ", ", ShownIoPriority(settings.io_priority));
  return text;
}

std::set<pid_t> ThreadsOf(const std::string& cgroup, bool v2, HostFiles& files) {
  const StatusOr<CgroupThreads> found = FindCgroupThreads(cgroup, v2, files);
  return found.ok() ? found->threads : std::set<pid_t>();
}

ThreadsOutcome SetThreads(const std::string& cgroup, bool v2, const SchedulingClassConfig& wanted,
                          HostFiles& files, ThreadAttributes& attributes) {
  const SchedulerSettings& scheduler = wanted.scheduler;
  const IoPriority& io = wanted.io_priority;
  ThreadsOutcome outcome;
  std::set<pid_t> done;
  int scheduler_error = 0;
  int io_error = 0;
  // Errors for a thread that has ended meanwhile do not count.
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
        ErrnoStatus(scheduler_error,
                    fmt::format("the kernel refuses the scheduler {}{}", ShownScheduler(scheduler),
                                SchedulerHint(scheduler_error, scheduler, scheduled, done.size())));
  if (io_error != 0)
    outcome.io = ErrnoStatus(
        io_error, fmt::format("the kernel refuses the I/O priority {}{}", ShownIoPriority(io),
                              io_error == EPERM ? "; it needs CAP_SYS_NICE" : ""));
  if (!done.empty()) outcome.in_force = ReadBackThread(*done.begin(), wanted, attributes);
  return outcome;
}

std::optional<std::string> ReadThreads(const std::string& cgroup, bool v2,
                                       const SchedulingClassConfig& wanted, HostFiles& files,
                                       ThreadAttributes& attributes) {
  const std::set<pid_t> threads = ThreadsOf(cgroup, v2, files);
  if (threads.empty()) return std::nullopt;
  return ReadBackThread(*threads.begin(), wanted, attributes);
}

int KernelThreadAttributes::SetScheduler(pid_t thread, const SchedulerSettings& scheduler) {
  KernelAttributes attributes{.nice = scheduler.nice,
                              .priority = static_cast<uint32_t>(scheduler.priority),
                              .runtime = scheduler.runtime_ns,
                              .deadline = scheduler.deadline_ns,
                              .period = scheduler.period_ns};
  for (const KnownPolicy& known : kPolicies)
    if (known.policy == scheduler.policy) attributes.policy = known.number;
  // The kernel's flags are bits, numbered as these enumerators.
  for (const SchedulerSettings::Flag flag : scheduler.flags)
    attributes.flags |= uint64_t{1} << static_cast<unsigned>(flag);
  const int error = ResultOf(::syscall(SYS_sched_setattr, thread, &attributes, 0));
  if (error != 0) return error;
  // sched_setattr sets the nice value only with the usual policies, so SCHED_IDLE needs a call of
  // its own.
  const bool separate = scheduler.policy == SchedPolicy::kIdle && scheduler.nice != 0;
  return separate ? ResultOf(::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), scheduler.nice))
                  : 0;
}

int KernelThreadAttributes::GetScheduler(pid_t thread, SchedulerSettings& scheduler) {
  KernelAttributes attributes;
  const int error =
      ResultOf(::syscall(SYS_sched_getattr, thread, &attributes, sizeof(attributes), 0));
  if (error != 0) return error;
  for (const KnownPolicy& known : kPolicies)
    if (known.number == attributes.policy) scheduler.policy = known.policy;
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
