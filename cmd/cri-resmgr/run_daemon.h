// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace resmgr {

// cri-resmgr as a command with these arguments: returns its exit code (exit_code.h) when it ends.
// `version` is what the daemon tells of itself.
int RunDaemon(int argc, const char* const* argv, std::string_view version);

}  // namespace resmgr
