// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/status.h"
#include "pkg/node/node_options.h"
#include "pkg/node/startup.h"

namespace resmgr {

// Runs one node's daemon: a front door, the brain behind it, its state, live configuration, dump,
// metrics and the node's own sockets, on one event loop, until SIGTERM or SIGINT has ended it in
// good order (a second one ends it at once). SIGHUP reads the configuration file again, SIGUSR1
// switches debug messages. AlreadyExists: another instance serves the front door's socket; then
// nothing on the disk was touched. What the node can do without (state, dump, metrics, agent,
// other sockets) is tried again with a warning where it fails.
Status RunNode(const NodeOptions& options, Setup setup);

}  // namespace resmgr
