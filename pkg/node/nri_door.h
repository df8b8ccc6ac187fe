// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/node/front_door.h"
#include "pkg/nri/plugin_front.h"

namespace resmgr {

// A front door that is a plugin of the runtime's NRI (pkg/nri/plugin_front.h): no relay, and no
// change of the kubelet. The door has no socket of its own; it connects to the runtime's NRI socket
// once that exists. `options.connection` has passed nri::PluginConnection::Check. `runtime_socket`
// is the CRI socket of the same runtime, for updates of containers when NRI is not safe for them
// (pkg/nri/update_queue.h). The factory returns kAlreadyExists if another daemon is a plugin there.
FrontDoorFactory NriDoorFactory(nri::PluginFront::Options options, std::string runtime_socket);

}  // namespace resmgr
