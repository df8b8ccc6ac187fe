// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr::nri {

// What hosts take as the name of a plugin (NRI 0.12: letters, digits and _.+-) and as its index
// (two digits). InvalidArgument tells which of the two is wrong.
Status CheckPluginName(std::string_view index, std::string_view name);

// "10-logger": the order of plugins, and what they are called everywhere.
std::string FullPluginName(std::string_view index, std::string_view name);

}  // namespace resmgr::nri
