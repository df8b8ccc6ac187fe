// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace resmgr {

// The paths of all methods of the CRI (runtime.v1 and runtime.v1alpha2) that this build knows: what
// metrics count by name. The relay itself needs no such list.
std::vector<std::string> KnownMethodPaths();

// The names of those of the RuntimeService, sorted.
std::vector<std::string> KnownRuntimeMethods();

}  // namespace resmgr
