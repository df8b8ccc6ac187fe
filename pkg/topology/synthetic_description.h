// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// Checks a description of a synthetic machine before hwloc reads it: hwloc would build all CPUs
// before they could be counted. InvalidArgument if these are more than a CpuSet holds, or if it
// cannot be told how many they are, as hwloc reads numbers like 0x10 and levels without a space
// between them. hwloc checks the rest.
Status CheckSynthetic(std::string_view description);

}  // namespace resmgr
