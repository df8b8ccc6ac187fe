// SPDX-License-Identifier: Apache-2.0
#include "test/bench/policy/balloons_bench.h"

#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "pkg/config/yaml_reader.h"
#include "policies/balloons/balloons_policy.h"

namespace resmgr::test {
namespace {

StatusOr<std::unique_ptr<Policy>> CreateWith(const PolicyContext& context, std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode section, ParseYaml(text, "bench"));
  PolicyContext own = context;
  own.section = &section;
  return BalloonsPolicy::Create(own);
}

// A balloon for each Guaranteed container; `more` are keys of its type.
StatusOr<std::unique_ptr<Policy>> DedicatedWith(const PolicyContext& context,
                                                std::string_view more) {
  return CreateWith(context, fmt::format(R"(
allocatorTopologyBalancing: true
balloonTypes:
- name: dedicated
  matchExpressions: [{{key: qosclass, operator: Equals, values: [Guaranteed]}}]
  preferNewBalloons: true
  preferSpreadingPods: true
{}
- name: shared
  namespaces: ["*"]
  maxCPUs: 16
  shareIdleCPUsInSame: numa
)",
                                         more));
}

StatusOr<std::unique_ptr<Policy>> Dedicated(const PolicyContext& context) {
  return DedicatedWith(context, "");
}

StatusOr<std::unique_ptr<Policy>> DedicatedWithinNode(const PolicyContext& context) {
  return DedicatedWith(context, "  makeRoomWithin: numa");
}

StatusOr<std::unique_ptr<Policy>> SixtyFour(const PolicyContext& context) {
  return CreateWith(context, R"(
allocatorTopologyBalancing: true
balloonTypes:
- {name: pool, namespaces: ["*"], minCPUs: 1, minBalloons: 64, maxBalloons: 64}
)");
}

}  // namespace

PolicyFactory DedicatedBalloonsFactory() {
  return {.name = "balloons", .description = "", .create = Dedicated};
}

PolicyFactory BalloonsWithinNodeFactory() {
  return {.name = "balloons-within", .description = "", .create = DedicatedWithinNode};
}

PolicyFactory SixtyFourBalloonsFactory() {
  return {.name = "balloons", .description = "", .create = SixtyFour};
}

}  // namespace resmgr::test
