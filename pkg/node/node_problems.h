// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "pkg/model/problem.h"
#include "pkg/node/node_view.h"
#include "pkg/resmgr/resource_manager.h"

namespace resmgr {

// All problems that an operator should look after, from all parts of the node, each with its time.
// `status`, the page, `explain`, metrics and Events show this list. Waits for nothing. Loop's
// thread only.
std::vector<Problem> ProblemsOf(const NodeView& node);

// Visits each container whose last update failed.
void ForEachNotUpdated(
    const ResourceManager& manager,
    const std::function<void(const Pod&, const Container&, const Status& error)>& visit);

}  // namespace resmgr
