// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace resmgr {

// Whether a pool of this name has the reserved CPUs: all policies use this name, with a number if
// there may be several.
inline bool IsReservedPool(std::string_view name) {
  return name == "reserved" || name.starts_with("reserved[");
}

// The name without the number that balloons have: "batch" for "batch[2]".
inline std::string_view PoolTypeOf(std::string_view name) {
  return name.substr(0, name.find('['));
}

}  // namespace resmgr
