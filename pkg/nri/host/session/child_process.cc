// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/child_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/errno_status.h"

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
  pid_t pid = -1;
  const int error = Spawning(its_socket.get(), its_output.get()).Run(plugin, pid);
  if (error != 0) {
    return FailedPrecondition("cannot execute {}: {}", Printable(plugin.path),
                              std::generic_category().message(error));
  }
  RESMGR_ASSIGN_OR_RETURN(child->group_, ProcessGroup::Own(pid));
  return child;
}

}  // namespace resmgr::nri
