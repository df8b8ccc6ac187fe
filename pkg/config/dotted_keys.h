// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/config/config_node.h"
#include "pkg/config/problems.h"

namespace resmgr {

// The tree with every key of the root that has dots taken apart: {"policy.Active": x} becomes
// {"policy": {"Active": x}}, joined with a "policy" that stands there already. Names match without
// regard to case. A problem is a key whose place has a value already, or lies below something that
// is no map, or that is one too many: they may make 20,000 maps. Such a key is left out. A root
// that is no map stays as it is. Takes time in proportion to the tree.
ConfigNode ExpandDottedKeys(ConfigNode root, Problems& problems);

}  // namespace resmgr
