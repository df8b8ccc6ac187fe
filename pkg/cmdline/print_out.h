// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// Writes the whole text to standard output and flushes it. kUnavailable if not all of it could be
// written: a script must not take a full disk or a closed pipe for success. SIGPIPE has to be
// ignored.
Status PrintOut(std::string_view text);

}  // namespace resmgr
