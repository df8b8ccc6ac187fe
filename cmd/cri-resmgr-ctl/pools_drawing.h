// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace resmgr {

// The daemon's list of pools (PoolsJson in pkg/admin/node_json.h) for a terminal: a line per pool,
// below the pool that it is a part of, and under it the containers in it. Lists of CPUs that would
// fill the line are cut; JSON has them all. Throws nlohmann's exceptions when a member is missing.
std::string DrawPools(const nlohmann::ordered_json& pools);

}  // namespace resmgr
