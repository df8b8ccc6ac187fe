// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/config/config_node.h"

namespace resmgr {

// Names what has no effect in a section policy.balloons, one sentence each: keys that are read for
// the sake of nri-plugins' files, classes that nothing applies yet, and the kubelet's devices. None
// for a section that is wrong. The same for any number of types: a list is cut after some names.
std::vector<std::string> BalloonsWithoutEffect(const ConfigNode& section);

}  // namespace resmgr
