// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "pkg/grpc/unary_server.h"
#include "pkg/node/node_view.h"

namespace resmgr {

// Gives all containers back what their own requests ask for (Configurator::LetGo), and answers when
// the runtime has changed all of them, or after `patience`:
//   {"moves":[node_json.h] (what changes of each),
//    "host":[report_json.h] (what files of the host get back; left out if there is none),
//    "done": whether no container is bound any more, and the host has its values back}
// Without `apply` nothing changes, and "done" is false. The view outlives the answer.
void Uninstall(const NodeView& node, bool apply, const UnaryServer::Reply& reply,
               std::chrono::milliseconds patience = std::chrono::seconds(30));

}  // namespace resmgr
