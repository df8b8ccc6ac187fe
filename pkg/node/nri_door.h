// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/node/front_door.h"
#include "pkg/nri/plugin_front.h"

namespace resmgr {

// A plugin of the runtime's NRI (pkg/nri/plugin_front.h) as a front door: no relay and no change at
// the kubelet. The door has no socket of its own; it connects to the runtime's as soon as that
// exists. `options.connection` has passed nri::PluginConnection::Check. `runtime_socket` is the
// same runtime's CRI, for updates of containers when its NRI cannot safely be asked
// (pkg/nri/update_queue.h). The factory's kAlreadyExists: another daemon is a plugin there.
FrontDoorFactory NriDoorFactory(nri::PluginFront::Options options, std::string runtime_socket);

}  // namespace resmgr
