// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// `cri-resmgr-ctl classes`.
std::unique_ptr<Command> MakeClassesCommand();

// The reply of the daemon as a table.
std::string ClassesText(const Reply& classes);

}  // namespace resmgr
