// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::test {

// A program that a test starts and ends. The kernel kills it when the thread that started it ends,
// so that it outlives no test, however the test ends. Thread-compatible.
class ChildProcess {
 public:
  // Starts argv[0], a path or a name to look up in PATH. Its output is appended to `log_file`.
  // kUnavailable: it could not be started; an argv[0] that does not exist shows as exit status 127.
  static StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& argv,
                                                       const std::filesystem::path& log_file);

  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  // Kills it where it still runs.
  ~ChildProcess();

  pid_t pid() const { return pid_; }

  // Does nothing to a process that has ended.
  void Signal(int signal_number);

  // Its exit status as a shell has it, 128 + N for one that signal N ended. Can be asked again.
  // kDeadlineExceeded: it still runs.
  StatusOr<int> Wait(std::chrono::milliseconds timeout);

  bool Running() { return !Wait(std::chrono::milliseconds(0)).ok(); }

 private:
  ChildProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_;
  UniqueFd pidfd_;
  int exit_status_ = -1;
};

// Runs a program to its end. kInternal, with the end of its output: it failed.
Status RunProgram(const std::vector<std::string>& argv, const std::filesystem::path& log_file,
                  std::chrono::milliseconds timeout);

// Waits until the condition holds; kDeadlineExceeded names `what` if it does not in time.
Status WaitUntil(std::string_view what, std::chrono::milliseconds timeout,
                 const std::function<bool()>& condition);

// The file's text now, "" where there is no file.
std::string TextOf(const std::filesystem::path& file);

// How often `part` stands in the text.
size_t TimesIn(std::string_view text, std::string_view part);

// From /proc/PID/status, "VmHWM:" for example, in KiB for memory; 0 if it is missing.
int64_t ProcStatus(pid_t pid, const std::string& key);

// The end of a file, for messages about the failure of a program that logs to it.
std::string LastLines(const std::filesystem::path& file);

// The built cri-resmgr as a process of its own, as on a node. Killed with the test.
// Thread-compatible.
class DaemonProcess {
 public:
  // Starts it with these flags, its log in `log_file`, and returns once it reports that it is
  // ready. kUnavailable with the end of its log: it ended before, or was not ready in time.
  // `launcher` are words before the program's, of one that becomes it. `program` is another one in
  // place of the built cri-resmgr, to compare two of them or to run it under a profiler; empty for
  // none.
  static StatusOr<std::unique_ptr<DaemonProcess>> Start(
      const std::vector<std::string>& flags, const std::filesystem::path& log_file,
      const std::vector<std::string>& launcher = {}, const std::string& program = {});

  // Asks it to end as systemd does, and returns its exit status.
  StatusOr<int> Terminate();

  // kill -9.
  void Kill() { process_.reset(); }

  // Must not be called after Kill().
  ChildProcess& process() { return *process_; }

  // All of its output. A daemon that was started later with the same file appends to it.
  std::string Log() const { return TextOf(log_file_); }

 private:
  DaemonProcess(std::unique_ptr<ChildProcess> process, std::filesystem::path log_file)
      : process_(std::move(process)), log_file_(std::move(log_file)) {}

  std::unique_ptr<ChildProcess> process_;
  std::filesystem::path log_file_;
};

// A process that removes the remains of a private container runtime: shims, containers, mounts,
// cgroups and its directory (test/support/containerd/clean-up). It does so once this is destroyed
// and also when the test's process dies, whatever the reason. Thread-compatible.
class Cleaner {
 public:
  struct Places {
    std::filesystem::path directory;
    std::string cgroup;  // the name of the one top cgroup below which all containers have theirs
    // Below the directory:
    std::string runc_root;  // runc's state of each container
    std::string tasks;      // the shims' state of each container
  };
  // kUnavailable: no process could be started.
  static StatusOr<Cleaner> Start(const Places& places);

  Cleaner() = default;
  Cleaner(Cleaner&&) = default;
  Cleaner& operator=(Cleaner&&) = delete;
  // Waits until all is removed, for half a minute at most.
  ~Cleaner();

 private:
  explicit Cleaner(UniqueFd peer) : peer_(std::move(peer)) {}

  UniqueFd peer_;  // its standard input and output
};

}  // namespace resmgr::test
