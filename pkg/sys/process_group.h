// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {

// A child process that leads its own process group (POSIX_SPAWN_SETPGROUP). The destructor kills
// the whole group and reaps the process without waiting: a killed process may hang in a system call
// on a dead disk. Can be moved, thread-compatible.
class ProcessGroup {
 public:
  // Owns nothing.
  ProcessGroup() = default;
  // Takes over the child process. kResourceExhausted: the system has no resources to watch the
  // process, so it is killed.
  static StatusOr<ProcessGroup> Own(pid_t pid);

  ~ProcessGroup();
  ProcessGroup(ProcessGroup&& other) noexcept;
  ProcessGroup& operator=(ProcessGroup&& other) noexcept;

  // -1: nothing is owned.
  pid_t pid() const { return pid_; }
  // Becomes readable when the process has ended.
  int pidfd() const { return pidfd_.get(); }

  // Kills the group; the process has yet to be reaped.
  void Kill() const;

  struct End {
    bool exited = false;  // the process exited by itself; else a signal ended it
    int number = 0;       // exit status, or signal

    bool ok() const { return exited && number == 0; }
    std::string ToString() const;  // "exit status 1", "signal 9"
  };
  // Reaps an ended process, and kills the rest of its group. nullopt: it still runs, or nothing is
  // owned.
  std::optional<End> Reap();

 private:
  void Abandon();

  pid_t pid_ = -1;
  UniqueFd pidfd_;
};

}  // namespace resmgr
