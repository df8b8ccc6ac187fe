// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr::nri {

// Checks a plugin's name (NRI 0.12: letters, digits and _.+-) and index (two digits).
// kInvalidArgument tells which of the two is wrong.
Status CheckPluginName(std::string_view index, std::string_view name);

// "10-logger", the name in logs and commands, and the order of plugins.
std::string FullPluginName(std::string_view index, std::string_view name);

}  // namespace resmgr::nri
