// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// The outputs of `classes`, `plugins` and `runtimes` for people.
std::string ClassesText(const Reply& classes);
std::string PluginsText(const Reply& plugins, const TableStyle& style = {});
std::string RuntimesText(const Reply& runtimes, const TableStyle& style = {});

}  // namespace resmgr
