// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr/builtin_policies.h"

#include <array>

#include "policies/null/null_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"

namespace resmgr {

PolicyRegistry BuiltinPolicies() {
  const std::array factories = {NullPolicyFactory(), StaticPolicyFactory(),
                                StaticPlusPolicyFactory()};
  return PolicyRegistry(factories);
}

}  // namespace resmgr
