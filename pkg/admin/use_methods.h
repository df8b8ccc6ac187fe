// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "pkg/grpc/unary_server.h"
#include "pkg/node/node_view.h"

namespace resmgr {

// Answers `rebalance -by use` with
//   {"moves":[node_json.h],"byUse":ROUND,"last":ROUND or null}, where ROUND is
//   {"time","state","measuredSeconds","containers","lacking","lackingPredicted","lackingMeasured",
//    "note","moves":[{"container","from","to","used","pressure","gain","state","reason"}]}
// "lacking…", "used" and "gain" are CPUs; "lackingMeasured" and "pressure" are null where they are
// not known. "last" is the last one that moved something. Where nothing was sampled lately, the
// answer takes two samples. `most_moves`: nullopt for as many as are configured.
void RebalanceByUse(const NodeView& node, bool apply, std::optional<int> most_moves,
                    const UnaryServer::Reply& reply);

}  // namespace resmgr
