// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/model/problem.h"
#include "pkg/node/node_view.h"

namespace resmgr {

// All problems that an operator should look after, from all parts of the node, each with its time.
// `status`, the page, `explain`, metrics and Events show this list. Waits for nothing. Loop's
// thread only.
std::vector<Problem> ProblemsOf(const NodeView& node);

}  // namespace resmgr
