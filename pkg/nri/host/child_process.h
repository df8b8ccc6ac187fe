// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/nri/host/plugin_directory.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::nri {

// A plugin's process, in a process group of its own. The destructor kills the whole group and reaps
// the process without waiting for it. Thread-compatible.
class ChildProcess {
 public:
  // NRI 0.6: the process gets its socket as fd 3, no arguments, and exactly these variables:
  // NRI_PLUGIN_NAME, NRI_PLUGIN_IDX, NRI_PLUGIN_SOCKET. Executing a file may block.
  // kFailedPrecondition: it cannot be executed; kResourceExhausted: the machine has no room for it.
  static StatusOr<std::unique_ptr<ChildProcess>> Start(const PluginFile& plugin);

  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Becomes readable when the process has ended.
  int pidfd() const { return pidfd_.get(); }
  // This side's ends, which the caller takes over: the plugin's socket, and a pipe with its output.
  // Neither blocks.
  UniqueFd TakeSocket() { return std::move(socket_); }
  UniqueFd TakeOutput() { return std::move(output_); }

  // Kills the process group; it must be reaped later.
  void Kill() const;
  // Reaps an ended process and kills its group: "exit status 1", "signal 9". "": it still runs.
  std::string Reap();

 private:
  ChildProcess() = default;

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd socket_;
  UniqueFd output_;
};

}  // namespace resmgr::nri
