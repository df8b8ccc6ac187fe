// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/node/front_door.h"
#include "pkg/nri/plugin_front.h"

namespace resmgr {

// A plugin of the runtime's NRI (pkg/nri/plugin_front.h) as a front door: no relay and no change at
// the kubelet. The door has no socket of its own; the runtime's is connected to, as soon as there
// is one. `options.connection` has passed nri::PluginConnection::Check. `runtime_socket` is that of
// the same runtime's CRI, for updates of containers where its NRI is not safe to ask
// (pkg/nri/update_queue.h). The factory's AlreadyExists: another daemon is a plugin there.
FrontDoorFactory NriDoorFactory(nri::PluginFront::Options options, std::string runtime_socket);

}  // namespace resmgr
