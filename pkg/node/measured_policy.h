// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/metrics/node_metrics.h"
#include "pkg/policy/policy.h"

namespace resmgr {

// Wraps the policy so that the metrics, which must outlive it, get the time of its decisions.
// nullptr for nullptr.
std::unique_ptr<Policy> Measured(std::unique_ptr<Policy> policy, NodeMetrics& metrics);

}  // namespace resmgr
