// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/base/status.h"
#include "pkg/nri/host/session/plugin_directory.h"
#include "pkg/sys/process_group.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::nri {

// A plugin's process, which leads a group of its own. Thread-compatible.
class ChildProcess {
 public:
  // NRI 0.6: the process gets its socket as fd 3, no arguments, and exactly these variables:
  // NRI_PLUGIN_NAME, NRI_PLUGIN_IDX, NRI_PLUGIN_SOCKET. Executing a file may block.
  // kFailedPrecondition: it cannot be executed; kResourceExhausted: the machine has no room for it.
  static StatusOr<std::unique_ptr<ChildProcess>> Start(const PluginFile& plugin);

  ProcessGroup& group() { return group_; }
  // This side's ends, which the caller takes over: the plugin's socket, and a pipe with its output.
  // Neither blocks.
  UniqueFd TakeSocket() { return std::move(socket_); }
  UniqueFd TakeOutput() { return std::move(output_); }

 private:
  ChildProcess() = default;

  ProcessGroup group_;
  UniqueFd socket_;
  UniqueFd output_;
};

}  // namespace resmgr::nri
