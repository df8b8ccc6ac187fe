// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>

namespace resmgr::hooks {

// Views of the variables that a server was sent.
using SentVariables = absl::flat_hash_map<std::string_view, std::string_view>;

// The encoded answer to a container's hook without its variables, where these repeat exactly what
// the server was sent: that is no change, as an answer without any is none. Most servers repeat
// dozens of them. nullopt: it does not, or cannot be read.
std::optional<std::string> WithoutRepeatedEnvironment(std::string_view answer, SentVariables sent);

}  // namespace resmgr::hooks
