// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/model/container.h"

namespace resmgr {

// Names and texts about placements that all policies have in common.

// Whether a pool of this name has the reserved CPUs: all policies use this name, with a number if
// there may be several.
inline bool IsReservedPool(std::string_view name) {
  return name == "reserved" || name.starts_with("reserved[");
}

// Whether a pool of this name has the isolated CPUs: no container shares those of them that are
// free.
inline bool IsIsolatedPool(std::string_view name) {
  return name == "isolated";
}

// The name without the number that balloons have: "batch" for "batch[2]".
inline std::string_view PoolTypeOf(std::string_view name) {
  return name.substr(0, name.find('['));
}

// The reason of a placement that was found after a restart, until the first decision: a change of
// it was admitted before and may not be in force, since the container is not on its saved exclusive
// CPUs, or its update was not saved. If such a container is on shared CPUs, this does not mean that
// there was no room for CPUs of its own.
inline constexpr std::string_view kWasToChange = "was to change when the daemon ended";

// Whether `predecessor`, as passed to Policy::Allocate with `container`, is an earlier attempt of
// this container. If not, it never ran: PartPlacer makes such a predecessor to ask for certain CPUs
// for a part of a claim. Pure.
inline bool IsFormerAttempt(const Container& container, const Container& predecessor) {
  return container.name == predecessor.name;
}

}  // namespace resmgr
