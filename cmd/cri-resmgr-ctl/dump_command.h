// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

// `dump -pod NS/POD`: the calls about one pod, for a while.
std::unique_ptr<Command> MakeDumpCommand();

}  // namespace resmgr
