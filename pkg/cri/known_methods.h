// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace resmgr {

// The paths of all methods of the CRI that this build knows, in both API versions: what metrics
// count by name. The relay itself needs no such list.
std::vector<std::string> KnownMethodPaths();

}  // namespace resmgr
