// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/nri/protocol.h"
#include "pkg/sys/files.h"

namespace resmgr::nri {
namespace {

// The destructor does not wait for the thread, which may hang while it executes a plugin's file.
constexpr std::chrono::milliseconds kPatience{0};

constexpr int kPluginSocket = 3;  // the value of NRI_PLUGIN_SOCKET

// The file actions and attributes of one posix_spawn.
class Spawning {
 public:
  Spawning(int socket, int output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, 1);
    ::posix_spawn_file_actions_adddup2(&actions_, output, 2);
    // Last, since `output` or `socket` may itself be fd 3, which this action overwrites.
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

constexpr std::chrono::seconds kSecond{1};

}  // namespace

PluginProcess::PluginProcess(EventLoop& loop, Owner& owner, const HostOptions& options,
                             PluginFile plugin)
    : loop_(loop),
      owner_(owner),
      options_(options),
      plugin_(std::move(plugin)),
      full_name_(FullPluginName(plugin_.index, plugin_.name)),
      log_(GetLogger("nri/host")),
      off_loop_(loop, "nri-launch", kPatience),
      pauses_(options.first_restart, options.last_restart) {}

PluginProcess::~PluginProcess() = default;

void PluginProcess::Start() {
  restart_.reset();
  const Status begun = off_loop_.Run([this, plugin = plugin_]() -> EventLoop::Task {
    using Child = StatusOr<std::unique_ptr<ChildProcess>>;
    const auto child = std::make_shared<Child>(ChildProcess::Start(plugin));
    return [this, child] { OnStarted(std::move(*child)); };
  });
  if (!begun.ok()) OnStarted(begun);
}

void PluginProcess::OnStarted(StatusOr<std::unique_ptr<ChildProcess>> child) {
  if (!child.ok()) {
    const std::string again = StartLater();
    return owner_.OnNotStarted(plugin_, Unavailable("{}; {}", Message(child.status()), again));
  }
  child_ = *std::move(child);
  started_ = loop_.Now();
  output_ = std::make_unique<PluginOutput>(loop_, child_->TakeOutput(), full_name_);
  exit_ = loop_.Watch(child_->group().pidfd(), EventLoop::kReadable, [this](int) { OnExit(); });
  session_ = owner_.OnStarted(plugin_, child_->TakeSocket(), child_->group().pid());
  if (session_ == nullptr) Restart();
}

// Its session ends by itself, after it has read the remaining bytes.
void PluginProcess::OnExit() {
  const pid_t pid = child_->group().pid();
  const auto end = child_->group().Reap();
  if (!end) return;
  const std::string how = end->ToString();
  log_.Warn("plugin {} (pid {}) has ended: {}", full_name_, pid, how);
  const std::string last = output_ == nullptr ? std::string() : output_->LastLine();
  session_ = nullptr;
  exit_.reset();
  child_.reset();
  if (loop_.Now() - started_ > options_.last_restart) pauses_.Reset();
  const std::string again = StartLater();
  owner_.OnExited(plugin_, Unavailable("it has ended: {}{}; {}", how,
                                       last.empty() ? "" : fmt::format(", \"{}\"", last), again));
}

void PluginProcess::Restart() {
  session_ = nullptr;
  if (child_ != nullptr) child_->group().Kill();
}

std::string PluginProcess::StartLater() {
  const std::chrono::milliseconds pause = pauses_.Next();
  std::string again = fmt::format("is started again in {} ms", pause.count());
  log_.Info("plugin {} {}", full_name_, again);
  restart_ = loop_.After(pause, [this] { Start(); });
  return "it " + again;
}

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

PluginOutput::PluginOutput(EventLoop& loop, UniqueFd pipe, std::string plugin)
    : loop_(loop),
      pipe_(std::move(pipe)),
      plugin_(std::move(plugin)),
      log_(GetLogger("nri/host")),
      limit_(50, std::chrono::seconds(10)) {
  watch_ = loop_.Watch(pipe_.get(), EventLoop::kReadable, [this](int) { Read(); });
}

const std::string& PluginOutput::LastLine() {
  constexpr int kReads = 16;
  for (int i = 0; i < kReads && watch_ != nullptr; ++i)
    Read();
  return last_line_;
}

void PluginOutput::Read() {
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(pipe_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    EndLine();
    watch_.reset();
    return;
  }
  Take({buffer.data(), static_cast<size_t>(got)});
  read_ += static_cast<size_t>(got);
  if (second_ == nullptr) {
    second_ = loop_.After(kSecond, [this] {
      second_.reset();
      read_ = 0;
      if (watch_ != nullptr) EventLoop::SetEvents(*watch_, EventLoop::kReadable);
    });
  }
  if (read_ >= kMostBytes) EventLoop::SetEvents(*watch_, 0);
}

void PluginOutput::Take(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() < kLongestLine) line_.append(piece.substr(0, kLongestLine - line_.size()));
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    EndLine();
  }
}

void PluginOutput::EndLine() {
  const std::string line = std::exchange(line_, {});
  if (line.empty()) return;
  last_line_ = line;
  if (const auto more = limit_.Pass(loop_.Now())) {
    const std::string lost =
        *more == 0
            ? ""
            : fmt::format(" ({} lost before it)", CountText(static_cast<int64_t>(*more), "line"));
    log_.Info("plugin {} says: {}{}", plugin_, Printable(line, kLongestLine), lost);
  }
}

}  // namespace resmgr::nri
