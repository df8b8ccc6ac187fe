// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/adjustment.h"

namespace resmgr::docker {

// The lists in the HostConfig of a creation: Binds, Mounts, Devices, Ulimits and SecurityOpt, as
// the Docker API 1.41 has them. Elements that an edit does not name stay as they were written.
// `object` is the body of the creation and has passed CheckJson. Pure functions.

// Names and values of members that an object is to have.
using NewMembers = std::vector<std::pair<std::string_view, std::string>>;

// Of HostConfig objects that come twice the last that has the field counts. "": there is none.
std::string_view HostConfigMember(std::string_view object, std::string_view field);

// What a security option says of seccomp: "unconfined", "builtin" (dockerd 23.0) or a profile as
// JSON, whose file the client has read; of several options the last one counts. nullopt: nothing.
std::optional<std::string_view> SeccompOf(std::string_view option);

// The lists that the adjustment changes, whole. kInvalidArgument: something that cannot be written
// so, which the message names.
Status AddLists(std::string_view object, const WideAdjustment& wide, NewMembers& members);

}  // namespace resmgr::docker
