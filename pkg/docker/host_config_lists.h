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

// The lists in the HostConfig of a creation: Binds, Mounts, Devices, Ulimits and SecurityOpt, in
// the form of Docker API 1.41. Elements that an edit does not name stay as they were written.
// `object` is the body of the creation and has passed CheckJson. Pure functions.

// Names and values of members to be set in an object.
using NewMembers = std::vector<std::pair<std::string_view, std::string>>;

// The member of the last HostConfig object that has the field; "" if none has it.
std::string_view HostConfigMember(std::string_view object, std::string_view field);

// The seccomp part of a security option: "unconfined", "builtin" (dockerd 23.0) or a profile as
// JSON, whose file the client has read; nullopt for other options. The last option counts.
std::optional<std::string_view> SeccompOf(std::string_view option);

// Adds the lists that the adjustment changes, each as a whole. kInvalidArgument names a change that
// Docker cannot express.
Status AddLists(std::string_view object, const WideAdjustment& wide, NewMembers& members);

}  // namespace resmgr::docker
