// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/policy.h"

namespace resmgr {

void Policy::Prepare(const Pod&) {}

StatusOr<Plan> Policy::LookAgain(const Snapshot&, ContainerKey) {
  return Plan{};
}

StatusOr<Plan> Policy::Rebalance(const Snapshot&) {
  return Plan{};
}

std::vector<std::string> Policy::Explain(ContainerKey) const {
  return {};
}

}  // namespace resmgr
