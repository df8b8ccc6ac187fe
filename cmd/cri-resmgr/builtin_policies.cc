// SPDX-License-Identifier: Apache-2.0
#include "policies/builtin_policies.h"

#include <array>

#include "policies/balloons/balloons_policy.h"
#include "policies/null/null_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"

namespace resmgr {

PolicyRegistry BuiltinPolicies() {
  const std::array factories = {NullPolicyFactory(), StaticPolicyFactory(),
                                StaticPlusPolicyFactory(), TopologyAwarePolicyFactory(),
                                BalloonsPolicyFactory()};
  return PolicyRegistry(factories);
}

}  // namespace resmgr
