// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cmd/cri-resmgr/flags.h"
#include "pkg/node/node_options.h"
#include "pkg/policy/registry.h"

namespace resmgr {

// The node's options from the flags: its front door, and the services on its other sockets.
NodeOptions OptionsOf(const Flags& flags, const PolicyRegistry& policies);

}  // namespace resmgr
