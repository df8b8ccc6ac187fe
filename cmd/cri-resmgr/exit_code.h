// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace resmgr
