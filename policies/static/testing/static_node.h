// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>

#include "policies/static/static_policy.h"
#include "test/integration/brain/policy_node.h"

namespace resmgr::test {

// A node under the static policy, for tests.
class StaticNode : public PolicyNode {
 public:
  explicit StaticNode(Machine machine, std::string_view reserved = "0",
                      std::string_view section = "")
      : PolicyNode(StaticPolicyFactory(), std::move(machine), reserved, section) {}
};

}  // namespace resmgr::test
