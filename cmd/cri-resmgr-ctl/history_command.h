// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

// What the running daemon did with containers lately, refusals included.
std::unique_ptr<Command> MakeHistoryCommand();

}  // namespace resmgr
