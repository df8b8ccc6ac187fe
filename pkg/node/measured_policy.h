// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/metrics/node_metrics.h"
#include "pkg/policy/policy.h"

namespace resmgr {

// Wraps the policy so that the metrics, which must outlive it, get the time of its decisions.
// nullptr for nullptr.
std::unique_ptr<Policy> Measured(std::unique_ptr<Policy> policy, NodeMetrics& metrics);

// The policy that is wrapped, without claims, or the same one if it is not: for questions about
// its rules.
const Policy& Uncounted(const Policy& policy);

// A copy, with the same claims, whose decisions do not count: for questions that are no decisions
// of the node, and would outnumber them in the metrics.
std::unique_ptr<Policy> UncountedCopy(const Policy& policy);

}  // namespace resmgr
