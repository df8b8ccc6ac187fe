// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace resmgr {

// Parts of the reason of a placement that gives a container less than it is entitled to. CPUs that
// become free later move no container before a rebalance, so a policy looks for these texts
// in placements that it takes over.
inline constexpr std::string_view kWantOfRoom = "shared for want of room: ";
inline constexpr std::string_view kFewerCpus = "fewer than it asks for, and no more are free";

// Whether the reason has one of these two texts.
inline bool LacksCpus(std::string_view reason) {
  return reason.starts_with(kWantOfRoom) || reason.find(kFewerCpus) != std::string_view::npos;
}

}  // namespace resmgr
