// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace resmgr {

// An alias of a policy, from cri-resource-manager, that configurations may use.
struct PolicyAlias {
  std::string_view alias;
  std::string_view policy;
};

inline constexpr std::array kPolicyAliases = {
    PolicyAlias{"none", "null"},
    PolicyAlias{"memtier", "topology-aware"},
};

// The policy's own name, which is shown everywhere; `name` itself if it is not an alias.
constexpr std::string_view OwnPolicyName(std::string_view name) {
  for (const PolicyAlias& known : kPolicyAliases) {
    if (known.alias == name) return known.policy;
  }
  return name;
}

}  // namespace resmgr
