// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

// `containers`: lists the containers and where they run.
std::unique_ptr<Command> MakeContainersCommand();

}  // namespace resmgr
