// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/grpc/unary_server.h"
#include "pkg/node/node_view.h"

namespace resmgr {

// Serves v1.Config, which an agent calls on -config-socket: SetConfig answers once the
// configuration is in force for every container, or with the reason why nothing changed.
// SetAdjustment refuses each adjustment, by its name, since this daemon has none. The objects that
// the view refers to must outlive the server.
UnaryServer::Methods ConfigMethods(const NodeView& node);

}  // namespace resmgr
