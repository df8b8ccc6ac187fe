// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cmd/cri-resmgr-ctl/command.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// `plugins`: lists the NRI plugins that the daemon serves.
std::unique_ptr<Command> MakePluginsCommand();

// The output for people.
std::string PluginsText(const Reply& plugins, const TableStyle& style = {});

}  // namespace resmgr
