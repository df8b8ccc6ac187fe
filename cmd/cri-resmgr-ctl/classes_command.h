// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// The reply of the daemon as a table.
std::string ClassesText(const Reply& classes);

}  // namespace resmgr
