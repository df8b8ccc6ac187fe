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
#include "test/support/containerd/child_process.h"

namespace resmgr::test {

// A dockerd of the test's own beside any other on the machine: its own data, containerd, socket and
// pid file in a fresh directory, no bridge and no packet filters, and the images local/pause:1 and
// local/busybox:1. Containers without a cgroup parent of their own are below CgroupParent().
//
// Whatever it started is gone when it is destroyed or when the test's process dies (Cleaner).
// Thread-compatible.
class Dockerd {
 public:
  static constexpr std::string_view kBusyboxImage = "local/busybox:1";
  static constexpr std::string_view kPauseImage = "local/pause:1";

  struct Options {
    bool debug = false;  // its log has each request
  };

  // Returns when it answers and the images are there. kFailedPrecondition: it cannot run here, with
  // the reason.
  static StatusOr<std::unique_ptr<Dockerd>> Start() { return Start(Options()); }
  static StatusOr<std::unique_ptr<Dockerd>> Start(const Options& options);

  Dockerd(const Dockerd&) = delete;
  Dockerd& operator=(const Dockerd&) = delete;
  ~Dockerd() = default;

  // A place for the test's own sockets, logs and files. Short, as socket paths must be.
  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path socket() const { return directory_ / "docker.sock"; }
  // A top cgroup of this dockerd's own.
  std::string CgroupParent() const {
    return (std::filesystem::path("/") / directory_.filename()).string();
  }

  // kill -9 of dockerd and its containerd. Containers go on running: it is started with
  // live-restore.
  void Kill() { process_.reset(); }
  // Starts it again on the same data; returns when it answers.
  Status Restart();

  std::string Log() const { return TextOf(directory_ / "dockerd.log"); }

 private:
  Dockerd(std::filesystem::path directory, Cleaner cleaner, const Options& options)
      : options_(options), directory_(std::move(directory)), cleaner_(std::move(cleaner)) {}

  Status LoadImages() const;

  const Options options_;
  const std::filesystem::path directory_;
  const Cleaner cleaner_;  // ends after the process
  std::unique_ptr<ChildProcess> process_;
};

// Debian's `docker`, of the same version as its dockerd, where it is installed; another may be
// before it in PATH.
std::string DockerProgram();

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
