// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/run_in_child.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace resmgr {

namespace {

constexpr unsigned kTimeLimitSeconds = 5;
// Limit of a report: far less than a pipe holds.
constexpr size_t kMaxReport = 2048;

// Restores signals in the child: the parent may have blocked them for its event loop, but here they
// must kill.
void ResetSignals() {
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM, SIGPIPE})
    signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void ReportFromChild(const std::function<Status()>& work, int done) {
  ResetSignals();
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(null, STDOUT_FILENO);
  dup2(null, STDERR_FILENO);
  alarm(kTimeLimitSeconds);
  const Status status = work();
  std::string report(1, static_cast<char>(status.code()));
  report.append(Message(status).substr(0, kMaxReport - 1));
  // _exit: the parent's exit handlers must not run here.
  _exit(write(done, report.data(), report.size()) < 0 ? 1 : 0);
}

// All that the child writes until it closes its end or dies.
std::string ReadReport(int done) {
  std::array<char, kMaxReport> buffer{};
  std::string report;
  for (;;) {
    const ssize_t received = read(done, buffer.data(), buffer.size());
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return report;
    report.append(buffer.data(), static_cast<size_t>(received));
  }
}

// `how`: the child's exit status; nullopt if this process ignores SIGCHLD.
Status WhyNoReport(std::optional<int> how) {
  const std::string late =
      fmt::format("the library that reads it needs more than {} seconds for it", kTimeLimitSeconds);
  constexpr std::string_view kCrash = "it crashes the library that reads it";
  if (!how) return InvalidArgument("{}, or {}", kCrash, late);
  const bool alarmed = WIFSIGNALED(*how) && WTERMSIG(*how) == SIGALRM;
  return InvalidArgument("{}", alarmed ? std::string_view(late) : kCrash);
}

}  // namespace

Status RunInChild(const std::function<Status()>& work) {
  std::array<int, 2> done{};
  if (pipe2(done.data(), O_CLOEXEC) != 0) return Unavailable("no pipe: {}", std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) ReportFromChild(work, done[1]);
  const int fork_error = errno;
  close(done[1]);
  if (child < 0) {
    close(done[0]);
    return Unavailable("no child process: {}", std::strerror(fork_error));
  }
  // The report decides, and not the exit status: a process that ignores SIGCHLD gets none.
  const std::string report = ReadReport(done[0]);
  close(done[0]);
  int how = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(child, &how, 0);
  } while (ended < 0 && errno == EINTR);
  if (report.empty()) return WhyNoReport(ended < 0 ? std::nullopt : std::optional<int>(how));
  return MakeStatus(static_cast<StatusCode>(report[0]), std::string_view(report).substr(1));
}

}  // namespace resmgr
