// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace resmgr {

// Draws the daemon's list of pools (PoolsJson in pkg/admin/node_json.h) for a terminal: a line per
// pool, below its parent pool, followed by its containers. Lists of CPUs that would fill the line
// are shortened; JSON has them all. Throws nlohmann's exceptions if a member is missing.
std::string DrawPools(const nlohmann::ordered_json& pools);

}  // namespace resmgr
