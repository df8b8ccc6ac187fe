// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::test {

// A `docker` command of a user's that runs beside the test, with pipes or with a terminal. Killed
// with this object and with the test. Thread-compatible.
class CliProcess {
 public:
  struct Result {
    int exit_code = 0;  // as a shell has it
    std::string output;
    std::string errors;  // "" with a terminal
  };

  // `directory`: where the program runs and keeps its configuration.
  static StatusOr<std::unique_ptr<CliProcess>> Start(const std::vector<std::string>& argv,
                                                     const std::filesystem::path& directory,
                                                     bool terminal);
  CliProcess(const CliProcess&) = delete;
  CliProcess& operator=(const CliProcess&) = delete;
  ~CliProcess();

  // Into its standard input, while its output is read.
  Status Type(std::string_view text, std::chrono::milliseconds timeout = kTimeout);
  // Ends the program's input; its output is still read.
  void EndInput() { input_.Reset(); }
  // Waits until it has made its terminal raw, since the terminal echoes and changes earlier input.
  // kDeadlineExceeded: it has not.
  Status AwaitRawTerminal(std::chrono::milliseconds timeout = kTimeout);
  // Waits until its output has this text. kDeadlineExceeded and kUnavailable have the output so
  // far.
  Status Expect(std::string_view text, std::chrono::milliseconds timeout = kTimeout);
  // Waits until the program and its output have ended.
  StatusOr<Result> Wait(std::chrono::milliseconds timeout = kTimeout);
  void Signal(int signal_number);
  const std::string& output() const { return result_.output; }

  static constexpr std::chrono::milliseconds kTimeout{120'000};

 private:
  CliProcess(pid_t pid, UniqueFd input, UniqueFd output, UniqueFd errors);

  // Waits for something to read or, with `writes`, for room to write. False: at its end.
  StatusOr<bool> Pump(std::chrono::steady_clock::time_point deadline, bool writes);

  pid_t pid_;
  bool ended_ = false;
  UniqueFd input_;
  UniqueFd output_;
  UniqueFd errors_;
  Result result_;
};

}  // namespace resmgr::test
