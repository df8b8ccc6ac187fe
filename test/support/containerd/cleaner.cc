// SPDX-License-Identifier: Apache-2.0
#include "test/support/containerd/cleaner.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace resmgr::test {
namespace {

constexpr std::chrono::seconds kCleanTimeout{30};

}  // namespace

// Started twice removed, so that a runner that kills the test with its whole tree of processes, as
// a test runner does at a timeout, does not find it.
StatusOr<Cleaner> Cleaner::Start(const Places& places) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Unavailable("socketpair: {}", std::strerror(errno));
  }
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  std::string script = RESMGR_SOURCE_DIR "/test/support/containerd/clean-up";
  std::string directory = places.directory;
  std::string cgroup = places.cgroup;
  std::string runc_root = places.runc_root;
  std::string tasks = places.tasks;
  const std::array<char*, 6> argv{script.data(),    directory.data(), cgroup.data(),
                                  runc_root.data(), tasks.data(),     nullptr};
  const pid_t pid = ::fork();
  if (pid < 0) return Unavailable("fork: {}", std::strerror(errno));
  if (pid == 0) {
    ::setsid();
    if (::fork() != 0) ::_exit(0);
    ::dup2(theirs.get(), STDIN_FILENO);
    ::dup2(theirs.get(), STDOUT_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(1);
  }
  ::waitpid(pid, nullptr, 0);
  return Cleaner(std::move(ours));
}

Cleaner::~Cleaner() {
  if (!peer_.valid()) return;
  // It cleans up once it reads the end of its input, and closes its output by ending.
  ::shutdown(peer_.get(), SHUT_WR);
  pollfd done{.fd = peer_.get(), .events = POLLIN, .revents = 0};
  ::poll(&done, 1, static_cast<int>(std::chrono::milliseconds(kCleanTimeout).count()));
}

}  // namespace resmgr::test
