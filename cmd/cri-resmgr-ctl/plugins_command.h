// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// The output for people.
std::string PluginsText(const Reply& plugins, const TableStyle& style = {});

}  // namespace resmgr
