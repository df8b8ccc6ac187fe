// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// A failed system call as a status: "<what>: No such file or directory".
//   kNotFound            nothing is there
//   kAlreadyExists       something is there already
//   kInvalidArgument     the name or what it stands for does not fit the call
//   kResourceExhausted   no space, memory or fds left
//   kFailedPrecondition  the permissions are missing
//   kUnavailable         everything else
Status ErrnoStatus(int error, std::string_view what);

}  // namespace resmgr
