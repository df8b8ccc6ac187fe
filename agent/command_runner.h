// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"

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

// Starts programs; an interface so that tests need none. The callback comes later, on the loop.
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

}  // namespace resmgr::agent
