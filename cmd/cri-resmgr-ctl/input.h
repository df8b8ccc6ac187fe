// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "pkg/base/status.h"

namespace resmgr {

// The content of a file that a user names; "-" is the standard input. kInvalidArgument if it has
// more than `limit` bytes. Other errors as ReadInput (pkg/sys/files.h).
StatusOr<std::string> ReadNamedInput(const std::string& file, size_t limit);

// The file's name for messages: "standard input" for "-".
std::string NameOfInput(const std::string& file);

}  // namespace resmgr
