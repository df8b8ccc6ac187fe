// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// Exit codes of the process, for scripts and service managers.
enum ExitCode : int {
  kExitOk = 0,
  kExitUsage = 1,        // flags or configuration
  kExitEnvironment = 2,  // socket in use, no topology
  kExitInternal = 3,
};

inline int ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return kExitOk;
    case StatusCode::kInvalidArgument:
      return kExitUsage;
    case StatusCode::kInternal:
      return kExitInternal;
    default:
      return kExitEnvironment;
  }
}

// cri-resmgr as a command with these arguments: returns its exit code (ExitCode) when it ends.
// `version` is the version that the daemon reports.
int RunDaemon(int argc, const char* const* argv, std::string_view version);

}  // namespace resmgr
