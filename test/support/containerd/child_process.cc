// SPDX-License-Identifier: Apache-2.0
#include "test/support/containerd/child_process.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/sys/files.h"
#include "test/support/programs/programs.h"
#include "test/support/wait.h"

namespace resmgr::test {
namespace {

constexpr int kExecFailed = 127;

// Between fork and exec, only functions that are safe while other threads hold locks may be called.
[[noreturn]] void Become(char* const* argv, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExecFailed);  // the parent ended before the line above
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execvp(argv[0], argv);
  ::_exit(kExecFailed);
}

// By number: <sys/pidfd.h> of glibc 2.36 does not declare it for C++.
UniqueFd OpenProcess(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

constexpr std::chrono::seconds kReadyTimeout{20};
constexpr std::chrono::seconds kTerminateTimeout{20};
constexpr std::string_view kReady = "ready";

constexpr std::chrono::seconds kCleanTimeout{30};

}  // namespace

StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const std::vector<std::string>& argv,
                                                            const std::filesystem::path& log_file) {
  const UniqueFd output(
      ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!output.valid()) {
    return Unavailable("cannot write {}: {}", log_file.string(), std::strerror(errno));
  }
  std::vector<std::string> arguments = argv;
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments)
    pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Unavailable("cannot start {}: {}", argv.front(), std::strerror(errno));
  if (pid == 0) Become(pointers.data(), output.get(), parent);
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, OpenProcess(pid)));
}

ChildProcess::~ChildProcess() {
  if (exit_status_ >= 0) return;
  Signal(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ChildProcess::Signal(int signal_number) {
  if (exit_status_ < 0) ::kill(pid_, signal_number);
}

StatusOr<int> ChildProcess::Wait(std::chrono::milliseconds timeout) {
  if (exit_status_ >= 0) return exit_status_;
  pollfd ended{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&ended, 1, static_cast<int>(timeout.count()));
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) {
    return DeadlineExceeded("process {} still runs after {} ms", pid_, timeout.count());
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  constexpr int kSignalBase = 128;
  exit_status_ = WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
  return exit_status_;
}

Status RunProgram(const std::vector<std::string>& argv, const std::filesystem::path& log_file,
                  std::chrono::milliseconds timeout) {
  RESMGR_ASSIGN_OR_RETURN(const auto process, ChildProcess::Start(argv, log_file));
  RESMGR_ASSIGN_OR_RETURN(const int exit_status, process->Wait(timeout));
  if (exit_status == 0) return OkStatus();
  return Internal("{} ended with status {}: {}", argv.front(), exit_status, LastLines(log_file));
}

Status WaitUntil(std::string_view what, std::chrono::milliseconds timeout,
                 const std::function<bool()>& condition) {
  if (Eventually(condition, timeout)) return OkStatus();
  return DeadlineExceeded("{}: not within {} ms", what, timeout.count());
}

std::string TextOf(const std::filesystem::path& file) {
  constexpr size_t kLimit = 64 << 20;
  return ReadFile(file, kLimit).value_or("");
}

size_t TimesIn(std::string_view text, std::string_view part) {
  size_t times = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++times;
  return times;
}

int64_t ProcStatus(pid_t pid, const std::string& key) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; file >> word;) {
    int64_t value = 0;
    if (word == key && file >> value) return value;
  }
  return 0;
}

std::string LastLines(const std::filesystem::path& file) {
  constexpr size_t kEnough = 40'000;
  const std::string text = TextOf(file);
  return text.size() <= kEnough ? text : "..." + text.substr(text.size() - kEnough);
}

StatusOr<std::unique_ptr<DaemonProcess>> DaemonProcess::Start(
    const std::vector<std::string>& flags, const std::filesystem::path& log_file,
    const std::vector<std::string>& launcher, const std::string& program) {
  std::vector<std::string> argv = launcher;
  argv.push_back(program.empty() ? Program("cri-resmgr") : program);
  argv.insert(argv.end(), flags.begin(), flags.end());
  const size_t earlier = TextOf(log_file).size();
  RESMGR_ASSIGN_OR_RETURN(auto process, ChildProcess::Start(argv, log_file));

  bool ready = false;
  const Status waited = WaitUntil("cri-resmgr says ready", kReadyTimeout, [&] {
    ready = TextOf(log_file).find(kReady, earlier) != std::string::npos;
    return ready || !process->Running();
  });
  if (!ready) {
    const std::string why = waited.ok() ? "cri-resmgr ended" : Describe(waited);
    return Unavailable("{}: {}", why, LastLines(log_file));
  }
  return std::unique_ptr<DaemonProcess>(new DaemonProcess(std::move(process), log_file));
}

StatusOr<int> DaemonProcess::Terminate() {
  process_->Signal(SIGTERM);
  return process_->Wait(kTerminateTimeout);
}

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
