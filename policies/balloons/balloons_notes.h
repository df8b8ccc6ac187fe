// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/config/config_node.h"

namespace resmgr {

// What a section policy.balloons says that has no effect, one sentence each: keys that are read for
// the sake of nri-plugins' files, classes that nothing applies yet, and the kubelet's devices. None
// of a section that is wrong. The same for any number of types: a list is cut after some names.
std::vector<std::string> BalloonsWithoutEffect(const ConfigNode& section);

}  // namespace resmgr
