// SPDX-License-Identifier: Apache-2.0
#include "test/support/dockerd/dockerd.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pty.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "pkg/sys/unix_socket.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;

constexpr seconds kStartTimeout{30};
constexpr seconds kLoadTimeout{60};
constexpr std::array<std::string_view, 2> kArchives{"pause.tar", "busybox.tar"};
// Debian's path: not all users have that folder in PATH.
constexpr const char* kDockerd = "/usr/sbin/dockerd";
constexpr const char* kDocker = "/usr/bin/docker";

std::filesystem::path ImageDirectory() {
  return std::filesystem::path(RESMGR_BINARY_DIR) / "test/support/images";
}

std::string DockerdProgram() {
  return ::access(kDockerd, X_OK) == 0 ? kDockerd : "dockerd";
}

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

std::string DockerProgram() {
  return ::access(kDocker, X_OK) == 0 ? kDocker : "docker";
}

StatusOr<std::unique_ptr<Dockerd>> Dockerd::Start(const Options& options) {
  if (::geteuid() != 0) {
    return FailedPrecondition("dockerd needs root, this is user {}", ::geteuid());
  }
  std::string name = "/tmp/resmgr-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    return Unavailable("cannot make a directory in /tmp: {}", std::strerror(errno));
  }
  const std::filesystem::path directory = name;
  RESMGR_ASSIGN_OR_RETURN(
      Cleaner cleaner,
      Cleaner::Start({.directory = directory,
                      .cgroup = directory.filename(),
                      .runc_root = "exec/runtime-runc/moby",
                      .tasks = "exec/containerd/daemon/io.containerd.runtime.v2.task/moby"}));
  std::unique_ptr<Dockerd> dockerd(new Dockerd(directory, std::move(cleaner), options));
  RESMGR_RETURN_IF_ERROR(dockerd->Restart());
  RESMGR_RETURN_IF_ERROR(dockerd->LoadImages());
  return dockerd;
}

Status Dockerd::Restart() {
  Kill();
  // A dockerd that ends its containerd lets it write its coverage into the directory for such
  // files.
  std::vector<std::string> argv = {
      "env", "TMPDIR=" + directory_.string(), DockerdProgram(), "--data-root", directory_ / "root",
      "--exec-root", directory_ / "exec", "-p", directory_ / "pid",
      // The machine's own configuration files are not used.
      "--config-file", directory_ / "daemon.json", "-H", "unix://" + socket().string(),
      "--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false",
      "--live-restore",
      // Less needs CAP_SYS_RESOURCE.
      "--oom-score-adjust=0", "--cgroup-parent", CgroupParent()};
  if (options_.debug) argv.emplace_back("--debug");
  std::error_code ignored;
  // Removes files of a killed dockerd. A containerd that was not reaped yet would count as running.
  std::filesystem::remove(directory_ / "pid", ignored);
  std::filesystem::remove(directory_ / "exec" / "containerd" / "containerd.pid", ignored);
  std::filesystem::remove(socket(), ignored);
  std::ofstream(directory_ / "daemon.json") << "{}";
  RESMGR_ASSIGN_OR_RETURN(process_, ChildProcess::Start(argv, directory_ / "dockerd.log"));
  Status ready = WaitUntil("dockerd listens", kStartTimeout, [&] {
    return !process_->Running() || ConnectUnix(socket().string()).ok();
  });
  if (ready.ok() && !process_->Running()) {
    ready = FailedPrecondition("{} does not run (Debian: docker.io)", DockerdProgram());
  }
  return ready.ok() ? ready : Annotate(ready, LastLines(directory_ / "dockerd.log"));
}

Status Dockerd::LoadImages() const {
  for (const std::string_view archive : kArchives) {
    RESMGR_RETURN_IF_ERROR(RunProgram({DockerProgram(), "-H", "unix://" + socket().string(), "load",
                                       "-i", ImageDirectory() / archive},
                                      directory_ / "load.log", kLoadTimeout));
  }
  return OkStatus();
}

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
