// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

using CommandList = std::vector<std::unique_ptr<Command>>;

// All commands, in the order of the help.
CommandList AllCommands();

}  // namespace resmgr
