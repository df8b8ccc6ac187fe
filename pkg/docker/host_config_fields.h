// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace resmgr::docker {

// The fields of HostConfig (Docker API 1.41), which clients before version 1.18 of the API put
// beside it. Pure functions.

// Whether Go reads a member with this quoted name into one of these fields.
bool IsHostConfigField(std::string_view quoted);

// The members of a creation's body with such names, as `"name":value`, in their order. The body has
// passed CheckJson.
std::vector<std::string> MembersBesideHostConfig(std::string_view object);

}  // namespace resmgr::docker
