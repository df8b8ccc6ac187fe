// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

// Commands that change the running daemon.
std::unique_ptr<Command> MakeConfigCommand();
std::unique_ptr<Command> MakeRebalanceCommand();
std::unique_ptr<Command> MakeLogCommand();

}  // namespace resmgr
