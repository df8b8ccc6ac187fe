// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::test {

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

}  // namespace resmgr::test
