// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/child_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/errno_status.h"
#include "pkg/sys/thread.h"

namespace resmgr::nri {
namespace {

constexpr int kPluginSocket = 3;  // the value of NRI_PLUGIN_SOCKET

// The file actions and attributes of one posix_spawn.
class Spawning {
 public:
  Spawning(int socket, int output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, 1);
    ::posix_spawn_file_actions_adddup2(&actions_, output, 2);
    // The last action, since either of the two may be fd 3 here.
    ::posix_spawn_file_actions_adddup2(&actions_, socket, kPluginSocket);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, kPluginSocket + 1);
    ::posix_spawnattr_init(&attributes_);
    sigset_t signals;
    ::sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes_, &signals);
    // The daemon ignores SIGPIPE, and the child would inherit that.
    ::sigfillset(&signals);
    ::posix_spawnattr_setsigdefault(&attributes_, &signals);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Spawning() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  Spawning(const Spawning&) = delete;
  Spawning& operator=(const Spawning&) = delete;

  // Returns 0 or an errno.
  int Run(const PluginFile& plugin, pid_t& pid) const {
    std::string path = plugin.path;
    std::array<std::string, 3> variables{"NRI_PLUGIN_NAME=" + plugin.name,
                                         "NRI_PLUGIN_IDX=" + plugin.index,
                                         "NRI_PLUGIN_SOCKET=" + std::to_string(kPluginSocket)};
    const std::array<char*, 2> arguments{path.data(), nullptr};
    const std::array<char*, 4> environment{variables[0].data(), variables[1].data(),
                                           variables[2].data(), nullptr};
    return ::posix_spawn(&pid, plugin.path.c_str(), &actions_, &attributes_, arguments.data(),
                         environment.data());
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Reaps a killed process once it ends: its system calls may delay that, on a dead disk for long.
void ReapLater(pid_t pid) {
  try {
    StartThread("nri-reap", [pid] { ::waitpid(pid, nullptr, 0); }).detach();
  } catch (const std::system_error&) {
    // It stays a zombie until this daemon ends.
  }
}

}  // namespace

StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const PluginFile& plugin) {
  std::array<int, 2> sockets{-1, -1};
  std::array<int, 2> pipe{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return ErrnoStatus(errno, "cannot make a pair of sockets");
  }
  auto child = std::unique_ptr<ChildProcess>(new ChildProcess());
  child->socket_.Reset(sockets[0]);
  const UniqueFd its_socket(sockets[1]);
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  child->output_.Reset(pipe[0]);
  const UniqueFd its_output(pipe[1]);
  // Only this end does not block: the plugin's end blocks, as programs expect.
  ::fcntl(child->socket_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(child->output_.get(), F_SETFL, O_NONBLOCK);
  const int error = Spawning(its_socket.get(), its_output.get()).Run(plugin, child->pid_);
  if (error != 0) {
    child->pid_ = -1;
    return FailedPrecondition("cannot execute {}: {}", Printable(plugin.path),
                              std::generic_category().message(error));
  }
  child->pidfd_.Reset(static_cast<int>(::syscall(SYS_pidfd_open, child->pid_, 0)));
  if (!child->pidfd_.valid()) return ErrnoStatus(errno, "cannot watch a process");
  return child;
}

void ChildProcess::Kill() const {
  ::kill(-pid_, SIGKILL);
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  Kill();
  ReapLater(pid_);
}

std::string ChildProcess::Reap() {
  siginfo_t info{};
  // Not reaped yet, so that its group's number cannot be reused before the group is killed.
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return "";
  }
  Kill();
  ::waitpid(std::exchange(pid_, -1), nullptr, WNOHANG);
  return fmt::format("{} {}", info.si_code == CLD_EXITED ? "exit status" : "signal",
                     info.si_status);
}

}  // namespace resmgr::nri
