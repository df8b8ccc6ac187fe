// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/process_group.h"

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/sys/files.h"
#include "pkg/sys/thread.h"

namespace resmgr {

StatusOr<ProcessGroup> ProcessGroup::Own(pid_t pid) {
  ProcessGroup group;
  group.pid_ = pid;
  group.pidfd_.Reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!group.pidfd_.valid()) return ErrnoStatus(errno, "cannot watch a process");
  return group;
}

ProcessGroup::~ProcessGroup() {
  Abandon();
}

ProcessGroup::ProcessGroup(ProcessGroup&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}

ProcessGroup& ProcessGroup::operator=(ProcessGroup&& other) noexcept {
  if (this == &other) return *this;
  Abandon();
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::move(other.pidfd_);
  return *this;
}

void ProcessGroup::Kill() const {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

void ProcessGroup::Abandon() {
  if (pid_ < 0) return;
  Kill();
  try {
    StartThread("reap", [pid = pid_] { ::waitpid(pid, nullptr, 0); }).detach();
  } catch (const std::system_error&) {
    // Without a thread that reaps it, the process stays a zombie until this daemon ends.
  }
  pid_ = -1;
}

std::optional<ProcessGroup::End> ProcessGroup::Reap() {
  siginfo_t info{};
  // WNOWAIT: while the process is not reaped, its group's number cannot be reused, so killing the
  // group hits no other one.
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  Kill();
  ::waitpid(std::exchange(pid_, -1), nullptr, WNOHANG);
  return End{.exited = info.si_code == CLD_EXITED, .number = info.si_status};
}

std::string ProcessGroup::End::ToString() const {
  return fmt::format("{} {}", exited ? "exit status" : "signal", number);
}

}  // namespace resmgr
