// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/cluster_access.h"
#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/files.h"
#include "pkg/sys/off_loop.h"

namespace resmgr::agent {

struct Command {
  std::vector<std::string> argv{};  // argv[0] a path, or a name to look up in PATH
  // Added to this process's environment.
  std::vector<std::pair<std::string, std::string>> environment{};
  std::chrono::milliseconds timeout{60'000};
};

// A running program whose output is collected. This object's end kills it with all processes that
// it started.
class RunningCommand {
 public:
  virtual ~RunningCommand() = default;
};

// Gets the program's output once it has ended with status 0. kFailedPrecondition names the program
// that could not be started, failed, took too long or printed more than a MiB.
using CommandDone = std::function<void(StatusOr<std::string> output)>;

// Starts programs; an interface, so that tests need no real ones. The callback comes later, on the
// loop.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  virtual std::unique_ptr<RunningCommand> Run(Command command, CommandDone done) = 0;
};

// The programs inherit standard error; their standard input is empty.
class LoopCommandRunner : public CommandRunner {
 public:
  explicit LoopCommandRunner(EventLoop& loop) : loop_(loop) {}
  std::unique_ptr<RunningCommand> Run(Command command, CommandDone done) override;

 private:
  EventLoop& loop_;
};

// The credentials of one request.
struct Credential {
  std::string token{};  // bearer; empty: none
  // PEM; empty: none.
  std::string certificate{};
  std::string key{};
  std::string authorities{};  // those that the server's certificate is checked against
};

// The output of an exec plugin: an ExecCredential.
struct PluginCredential {
  Credential credential{};
  std::optional<std::chrono::system_clock::time_point> expires{};
};
StatusOr<PluginCredential> ParsePluginCredential(std::string_view text);

// The credentials of one user, always fresh: files are read for each request, since their rotation
// is not announced, and off the loop, since their disk may hang; a plugin runs again when its
// credential has expired or the server refused it. Loop's thread only.
class Credentials {
 public:
  using Done = std::function<void(StatusOr<Credential> credential)>;
  using WallClock = std::function<std::chrono::system_clock::time_point()>;
  // Reads a file of at most `limit` bytes; called on any thread, until the process ends.
  using Read = std::function<StatusOr<std::string>(const std::string& path, size_t limit)>;

  // Time limit for reading the files: short enough that claims are answered within the daemon's
  // time limit.
  static constexpr std::chrono::seconds kReadPatience{2};

  // Loop and runner must outlive this object.
  Credentials(EventLoop& loop, ClusterAccess access, CommandRunner& runner,
              WallClock now = std::chrono::system_clock::now, Read read = ReadFile);

  // Calls back at once, or later if files must be read or a plugin must run; never after this
  // object's end. kFailedPrecondition names the file or the plugin that gave none.
  // kDeadlineExceeded: the files cannot be read in time.
  void Get(Done done);

  // Drops kept credentials after the server answered 401.
  void Reject() { kept_.reset(); }

 private:
  void ReadFiles();
  void FilesRead(const StatusOr<Credential>& files);
  void RunPlugin(const std::string& authorities);
  void PluginEnded(const std::string& authorities, const StatusOr<std::string>& output);
  // Answers all that wait.
  void Answer(const StatusOr<Credential>& credential);

  EventLoop& loop_;
  const std::shared_ptr<const ClusterAccess> access_;  // shared with the thread that reads
  CommandRunner& runner_;
  const WallClock now_;
  const Read read_;
  std::optional<PluginCredential> kept_;
  std::unique_ptr<RunningCommand> running_;
  std::vector<Done> waiting_;
  EventLoop::HandlePtr late_;  // the files are not read in time
  OffLoop reading_;
};

}  // namespace resmgr::agent
