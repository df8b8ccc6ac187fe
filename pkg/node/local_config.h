// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/node/configurator.h"
#include "pkg/node/node_options.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// Configurations that a running daemon reads from its own disk, off the loop.

// Puts the configuration of an earlier run in force when its disk answers, unless a newer one was
// delivered before. `off_loop` ends before the configurator does.
void RestoreLater(const NodeOptions& options, OffLoop& off_loop, Configurator& configurator);

// Reads the configuration file again, for SIGHUP, unless another configuration is in force.
void Reload(const NodeOptions& options, Configurator& configurator);
// Switches every debug message of every source on, or returns to the configuration.
void ToggleDebug(bool on, const Configurator& configurator);

}  // namespace resmgr
