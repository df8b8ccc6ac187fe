// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace resmgr {

// Another name of a policy, from cri-resource-manager, that configurations may use.
struct PolicyAlias {
  std::string_view alias;
  std::string_view policy;
};

inline constexpr std::array kPolicyAliases = {
    PolicyAlias{"none", "null"},
    PolicyAlias{"memtier", "topology-aware"},
};

// The name that the policy itself has, and that is shown everywhere; `name` where it is no alias.
constexpr std::string_view OwnPolicyName(std::string_view name) {
  for (const PolicyAlias& known : kPolicyAliases) {
    if (known.alias == name) return known.policy;
  }
  return name;
}

}  // namespace resmgr
