// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

// `history`: the running daemon's recent decisions, refusals included.
std::unique_ptr<Command> MakeHistoryCommand();

}  // namespace resmgr
