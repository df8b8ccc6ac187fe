// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>

namespace resmgr::hooks {

// Views of the variables in a request to a server.
using SentVariables = absl::flat_hash_map<std::string_view, std::string_view>;

// The encoded answer to a container's hook without its variables if these repeat exactly the sent
// ones; like an answer without variables, that is no change. Most servers repeat dozens of them.
// nullopt: the variables differ, or the answer is malformed.
std::optional<std::string> WithoutRepeatedEnvironment(std::string_view answer, SentVariables sent);

}  // namespace resmgr::hooks
