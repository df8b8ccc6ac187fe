// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace resmgr {

// The paths of all methods of the CRI (runtime.v1 and runtime.v1alpha2) that this build knows,
// which metrics count by name. Calls of other methods pass as well.
std::vector<std::string> KnownMethodPaths();

}  // namespace resmgr
