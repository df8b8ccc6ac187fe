// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

using CommandList = std::vector<std::unique_ptr<Command>>;

// Every command there is, in the order in which the help shows them.
CommandList AllCommands();

}  // namespace resmgr
