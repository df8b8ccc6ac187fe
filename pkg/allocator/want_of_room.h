// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace resmgr {

// In the reason of a placement: there was no room for all that the container is entitled to. Room
// that comes later moves no container before a rebalance, so a policy that takes placements over
// looks for these.
inline constexpr std::string_view kWantOfRoom = "shared for want of room: ";
inline constexpr std::string_view kFewerCpus = "fewer than it asks for, and no more are free";

}  // namespace resmgr
