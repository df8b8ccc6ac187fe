// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/status.h"
#include "pkg/node/node_options.h"
#include "pkg/node/startup.h"

namespace resmgr {

// Runs one node's daemon: a front door, the brain behind it, its state, live configuration, dump,
// metrics and the node's own sockets, on one event loop, until SIGTERM or SIGINT ends it in good
// order (a second one ends it at once). SIGHUP reads the configuration file again, SIGUSR1 switches
// debug messages. kAlreadyExists: another instance serves the front door's socket; nothing on the
// disk was touched then. Failures of optional parts (state, dump, metrics, agent, other sockets)
// cause a warning and are tried again.
Status RunNode(const NodeOptions& options, Setup setup);

}  // namespace resmgr
