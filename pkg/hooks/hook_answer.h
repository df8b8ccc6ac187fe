// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <google/protobuf/map.h>

namespace resmgr::hooks {

// The encoded answer to a container's hook without its variables, where these repeat exactly what
// the server was sent: that is no change, as an answer without any is none. Most servers repeat
// dozens of them. nullopt: it does not, or cannot be read.
std::optional<std::string> WithoutRepeatedEnvironment(
    std::string_view answer, const google::protobuf::Map<std::string, std::string>& sent);

}  // namespace resmgr::hooks
