// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"

namespace resmgr {

// The tree with every key of the root that has dots taken apart: {"policy.Active": x} becomes
// {"policy": {"Active": x}}, joined with a "policy" that stands there already. Names match without
// regard to case. InvalidArgument when the same place gets two values, or lies below something that
// is no map, or when they make more than 20,000 maps. A root that is no map stays as it is. Takes
// time in proportion to the tree.
StatusOr<ConfigNode> ExpandDottedKeys(ConfigNode root);

}  // namespace resmgr
