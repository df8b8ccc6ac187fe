// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

// `version`: of this program and of the running daemon, which need not run.
std::unique_ptr<Command> MakeVersionCommand();
// `help COMMAND`: as `COMMAND -help`.
std::unique_ptr<Command> MakeHelpCommand();
// `complete KIND`: names that the running daemon has, for shell completion; none without a daemon.
std::unique_ptr<Command> MakeCompleteCommand();

}  // namespace resmgr
