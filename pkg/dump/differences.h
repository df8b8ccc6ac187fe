// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace resmgr::dump {

// What is different in the second tree (message_tree.h) of the same message, one line for each
// value: `linux.resources.cpuset_cpus "" -> "1"`. What is not set is shown as protobuf's default.
// The `config` that stands around all of a creation is left out of the names.
std::vector<std::string> Differences(const nlohmann::json& before, const nlohmann::json& after);

}  // namespace resmgr::dump
