// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

// `explain`: why a container runs where it runs.
std::unique_ptr<Command> MakeExplainCommand();

}  // namespace resmgr
