// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/grpc/unary_server.h"
#include "pkg/node/node_view.h"

namespace resmgr {

// Answers with usage_json.h. `what` is "containers" (or ""), "nodes" or "cpus"; anything else is
// InvalidArgument. Where nothing was sampled lately, the answer takes two samples.
// `wide`: as ContainersUsageJson.
void Top(const NodeView& node, const std::string& what, bool wide, const UnaryServer::Reply& reply);

struct CpusRequest {
  std::string list{};  // "": all of the machine
  bool brief = false;  // without the containers on each
};
// Their use is left out where it is not known.
void Cpus(const NodeView& node, const CpusRequest& request, const UnaryServer::Reply& reply);

}  // namespace resmgr
