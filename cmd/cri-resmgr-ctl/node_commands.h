// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

// What the running daemon knows.
std::unique_ptr<Command> MakeStatusCommand();
std::unique_ptr<Command> MakePoliciesCommand();
std::unique_ptr<Command> MakePoolsCommand();
std::unique_ptr<Command> MakeContainersCommand();
std::unique_ptr<Command> MakeExplainCommand();

}  // namespace resmgr
