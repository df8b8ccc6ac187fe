// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/nri/host/plugin_directory.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::nri {

// A plugin's process, in a process group of its own. It is killed with the object, together with
// what it has started, and reaped without waiting for it. Thread-compatible.
class ChildProcess {
 public:
  // NRI 0.6: its socket is fd 3, it has no arguments, and exactly these variables: NRI_PLUGIN_NAME,
  // NRI_PLUGIN_IDX, NRI_PLUGIN_SOCKET. Executing a file may block. FailedPrecondition: it cannot be
  // executed; ResourceExhausted: the machine has no room for it.
  static StatusOr<std::unique_ptr<ChildProcess>> Start(const PluginFile& plugin);

  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Readable when the process has ended.
  int pidfd() const { return pidfd_.get(); }
  // Our ends, which the caller takes over: its socket, and a pipe with what it prints. Both do not
  // block.
  UniqueFd TakeSocket() { return std::move(socket_); }
  UniqueFd TakeOutput() { return std::move(output_); }

  // It and what it has started. To be reaped later.
  void Kill() const;
  // When it has ended: "exit status 1", "signal 9". Ends what it has started, too. "": it runs.
  std::string Reap();

 private:
  ChildProcess() = default;

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd socket_;
  UniqueFd output_;
};

}  // namespace resmgr::nri
