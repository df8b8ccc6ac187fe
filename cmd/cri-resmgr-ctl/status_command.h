// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

// `status`: the running daemon's state and what it holds.
std::unique_ptr<Command> MakeStatusCommand();

}  // namespace resmgr
