// SPDX-License-Identifier: Apache-2.0
#include "test/support/dockerd/cli.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "test/support/containerd/child_process.h"

namespace resmgr::test {
namespace {

constexpr int kExecFailed = 127;
constexpr int kSignalBase = 128;

struct Pipe {
  UniqueFd reading;
  UniqueFd writing;
};

StatusOr<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Unavailable("pipe: {}", std::strerror(errno));
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

[[noreturn]] void Become(const std::vector<char*>& argv, const std::vector<char*>& environment,
                         const char* directory) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::chdir(directory) != 0) ::_exit(kExecFailed);
  ::execve(argv[0], argv.data(), environment.data());
  ::_exit(kExecFailed);
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Appends the available output. False: the end; a terminal ends with EIO.
bool ReadInto(int fd, std::string& text) {
  std::array<char, 65536> buffer{};
  const ssize_t size = ::read(fd, buffer.data(), buffer.size());
  if (size > 0) text.append(buffer.data(), static_cast<size_t>(size));
  return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

CliProcess::CliProcess(pid_t pid, UniqueFd input, UniqueFd output, UniqueFd errors)
    : pid_(pid), input_(std::move(input)), output_(std::move(output)), errors_(std::move(errors)) {
  for (const UniqueFd* fd : {&input_, &output_, &errors_}) {
    if (fd->valid()) ::fcntl(fd->get(), F_SETFL, ::fcntl(fd->get(), F_GETFL) | O_NONBLOCK);
  }
}

StatusOr<std::unique_ptr<CliProcess>> CliProcess::Start(const std::vector<std::string>& argv,
                                                        const std::filesystem::path& directory,
                                                        bool terminal) {
  std::vector<std::string> arguments = argv;
  std::vector<std::string> variables = {"PATH=/usr/bin:/bin", "HOME=" + directory.string(),
                                        "TERM=xterm", "DOCKER_BUILDKIT=0"};
  const std::vector<char*> arguments_of = Pointers(arguments);
  const std::vector<char*> environment = Pointers(variables);
  if (terminal) {
    winsize size{.ws_row = 33, .ws_col = 101, .ws_xpixel = 0, .ws_ypixel = 0};
    int master = -1;
    const pid_t pid = ::forkpty(&master, nullptr, nullptr, &size);
    if (pid < 0) return Unavailable("forkpty: {}", std::strerror(errno));
    if (pid == 0) Become(arguments_of, environment, directory.c_str());
    UniqueFd output(master);
    UniqueFd input(::fcntl(master, F_DUPFD_CLOEXEC, 0));
    return std::unique_ptr<CliProcess>(
        new CliProcess(pid, std::move(input), std::move(output), UniqueFd()));
  }
  RESMGR_ASSIGN_OR_RETURN(Pipe input, MakePipe());
  RESMGR_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  RESMGR_ASSIGN_OR_RETURN(Pipe errors, MakePipe());
  const pid_t pid = ::fork();
  if (pid < 0) return Unavailable("fork: {}", std::strerror(errno));
  if (pid == 0) {
    ::dup2(input.reading.get(), STDIN_FILENO);
    ::dup2(output.writing.get(), STDOUT_FILENO);
    ::dup2(errors.writing.get(), STDERR_FILENO);
    Become(arguments_of, environment, directory.c_str());
  }
  return std::unique_ptr<CliProcess>(new CliProcess(
      pid, std::move(input.writing), std::move(output.reading), std::move(errors.reading)));
}

CliProcess::~CliProcess() {
  if (ended_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void CliProcess::Signal(int signal_number) {
  if (!ended_) ::kill(pid_, signal_number);
}

StatusOr<bool> CliProcess::Pump(std::chrono::steady_clock::time_point deadline, bool writes) {
  std::array<pollfd, 3> fds{pollfd{output_.get(), POLLIN, 0}, pollfd{errors_.get(), POLLIN, 0},
                            pollfd{writes ? input_.get() : -1, POLLOUT, 0}};
  if (fds[0].fd < 0 && fds[1].fd < 0 && fds[2].fd < 0) return false;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0 || ::poll(fds.data(), fds.size(), static_cast<int>(left.count())) == 0) {
    return DeadlineExceeded("it still runs; output so far: {}{}", result_.output, result_.errors);
  }
  if (fds[0].revents != 0 && !ReadInto(output_.get(), result_.output)) output_.Reset();
  if (fds[1].revents != 0 && !ReadInto(errors_.get(), result_.errors)) errors_.Reset();
  return true;
}

Status CliProcess::Type(std::string_view text, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!text.empty()) {
    const ssize_t size = ::write(input_.get(), text.data(), text.size());
    if (size > 0) {
      text.remove_prefix(static_cast<size_t>(size));
      continue;
    }
    if (size < 0 && errno != EAGAIN) return Unavailable("write: {}", std::strerror(errno));
    RESMGR_RETURN_IF_ERROR(Pump(deadline, /*writes=*/true).status());
  }
  return OkStatus();
}

Status CliProcess::AwaitRawTerminal(std::chrono::milliseconds timeout) {
  return WaitUntil("its terminal is raw", timeout, [this] {
    termios modes{};
    return ::tcgetattr(input_.get(), &modes) == 0 && (modes.c_lflag & (ICANON | ECHO)) == 0;
  });
}

Status CliProcess::Expect(std::string_view text, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  size_t from = 0;
  while (result_.output.find(text, from) == std::string::npos) {
    from = result_.output.size() - std::min(result_.output.size(), text.size());
    RESMGR_ASSIGN_OR_RETURN(const bool more, Pump(deadline, /*writes=*/false));
    if (!more) return Unavailable("it ended after: {}{}", result_.output, result_.errors);
  }
  return OkStatus();
}

StatusOr<CliProcess::Result> CliProcess::Wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  bool more = true;
  while (more) {
    RESMGR_ASSIGN_OR_RETURN(more, Pump(deadline, /*writes=*/false));
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  ended_ = true;
  result_.exit_code = WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
  return result_;
}

}  // namespace resmgr::test
