// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/model/problem.h"
#include "pkg/node/node_view.h"

namespace resmgr {

// The one list of what an operator should look after: every problem that any part of the node
// knows, each with its time. `status`, the page, `explain`, metrics and Events show it. Waits for
// nothing. Loop's thread only.
std::vector<Problem> ProblemsOf(const NodeView& node);

}  // namespace resmgr
