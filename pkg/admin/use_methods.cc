// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/use_methods.h"

#include <string>

#include "pkg/admin/node_json.h"
#include "pkg/admin/usage_json.h"
#include "pkg/base/json.h"

namespace resmgr {
namespace {

StatusOr<std::string> Rebalanced(UseRebalancer& rebalancer, bool apply,
                                 std::optional<int> most_moves) {
  RESMGR_ASSIGN_OR_RETURN(const UseRound round,
                          apply ? rebalancer.Apply(most_moves) : rebalancer.Preview(most_moves));
  const auto& rounds = rebalancer.rounds();
  return OrderedJsonText({{"moves", MovesJson(round.placements)},
                          {"byUse", UseRoundJson(round)},
                          {"last", rounds.empty() ? OrderedJson() : UseRoundJson(rounds.back())}});
}

}  // namespace

void RebalanceByUse(const NodeView& node, bool apply, std::optional<int> most_moves,
                    const UnaryServer::Reply& reply) {
  if (node.usage == nullptr || node.by_use == nullptr)
    return reply(Unavailable("use is not sampled"));
  node.usage->Look([&rebalancer = *node.by_use, apply, most_moves,
                    reply](const StatusOr<UsageSampler::Figures>& figures) {
    if (!figures.ok()) return reply(figures.status());
    reply(Rebalanced(rebalancer, apply, most_moves));
  });
}

}  // namespace resmgr
