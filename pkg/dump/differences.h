// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace resmgr::dump {

// The differences of the second tree (message_tree.h) of the same message, one line for each value:
// `linux.resources.cpuset_cpus "" -> "1"`. Unset values are shown as protobuf's default. The outer
// `config` of a creation is left out of the names.
std::vector<std::string> Differences(const nlohmann::json& before, const nlohmann::json& after);

}  // namespace resmgr::dump
