// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

// The policies of the running daemon, and the pools of the active one.
std::unique_ptr<Command> MakePoliciesCommand();
std::unique_ptr<Command> MakePoolsCommand();

}  // namespace resmgr
