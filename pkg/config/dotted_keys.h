// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/config/config_node.h"
#include "pkg/config/problems.h"

namespace resmgr {

// Splits every key of the root that has dots: {"policy.Active": x} becomes {"policy": {"Active":
// x}}, merged with an existing "policy". Names match without regard to case. A key is left out and
// reported as a problem if its place has a value already, if it is below something that is not a
// map, or if more than 20,000 maps would be made. A root that is not a map is returned unchanged.
// Takes time in proportion to the tree.
ConfigNode ExpandDottedKeys(ConfigNode root, Problems& problems);

}  // namespace resmgr
