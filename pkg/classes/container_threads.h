// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>

#include <sys/types.h>

#include "pkg/base/process_settings.h"
#include "pkg/base/status.h"
#include "pkg/classes/class_plan.h"
#include "pkg/classes/host_files.h"
#include "pkg/config/scheduling_config.h"

namespace resmgr {

// The container's cgroup of v2, else of v1; "" if it has none.
const std::string& CgroupOf(const ClassSubject& subject);
// The threads of the container's cgroup and of the cgroups below, which the container may have
// made; up to a limit. NotFound: the container has no cgroup. FailedPrecondition: some threads are
// outside of this process's PID namespace, so they have no number that could be written to a file.
// May block.
StatusOr<std::set<pid_t>> ThreadsOfContainer(const ClassSubject& subject, HostFiles& files);

// The threads in a file "tasks" of resctrl.
StatusOr<std::set<pid_t>> ReadTasks(const std::string& file, HostFiles& files);
// Moves a thread there. False: it has ended meanwhile.
StatusOr<bool> MoveTask(pid_t thread, const std::string& file, HostFiles& files);

// Attributes of threads in the kernel. Results: 0, or the error number. Thread-compatible.
class ThreadAttributes {
 public:
  virtual ~ThreadAttributes() = default;

  virtual int SetScheduler(pid_t thread, const SchedulerSettings& scheduler) = 0;
  virtual int GetScheduler(pid_t thread, SchedulerSettings& scheduler) = 0;
  virtual int SetIoPriority(pid_t thread, const IoPriority& priority) = 0;
  virtual int GetIoPriority(pid_t thread, IoPriority& priority) = 0;
};

// By sched_setattr(2), setpriority(2) and ioprio_set(2), which need CAP_SYS_NICE for another user's
// threads and for priorities above the usual one.
class KernelThreadAttributes final : public ThreadAttributes {
 public:
  int SetScheduler(pid_t thread, const SchedulerSettings& scheduler) override;
  int GetScheduler(pid_t thread, SchedulerSettings& scheduler) override;
  int SetIoPriority(pid_t thread, const IoPriority& priority) override;
  int GetIoPriority(pid_t thread, IoPriority& priority) override;
};

// The outcome for all threads of a container.
struct ThreadsOutcome {
  size_t threads = 0;  // threads that have the settings now
  // Not OK: the kernel refused the scheduler or the I/O priority.
  Status scheduler{};
  Status io{};
  std::string in_force{};  // the settings of the first thread, read back: "fifo 42, io be 6"
};

// Gives all threads of the cgroup (a path of HostFiles) and of those below it these settings; kNone
// leaves a setting as it is. Threads that begin meanwhile inherit the settings or are found in
// another round. Threads that end are not errors. `v2`: the cgroup is one of cgroup v2. May block.
ThreadsOutcome SetThreads(const std::string& cgroup, bool v2, const SchedulingClassConfig& wanted,
                          HostFiles& files, ThreadAttributes& attributes);
// The threads of the cgroup and of those below it; empty if they cannot be read. May block.
std::set<pid_t> ThreadsOf(const std::string& cgroup, bool v2, HostFiles& files);
// The settings of the container's first thread; changes nothing. nullopt if there is no thread.
std::optional<std::string> ReadThreads(const std::string& cgroup, bool v2,
                                       const SchedulingClassConfig& wanted, HostFiles& files,
                                       ThreadAttributes& attributes);

// "fifo 42", "other nice 5", "deadline 10000000ns within 20000000ns of each 20000000ns".
std::string ShownScheduler(const SchedulerSettings& scheduler);
// The scheduler and the I/O priority of a class, as text.
std::string ShownSettings(const SchedulingClassConfig& settings);

}  // namespace resmgr
