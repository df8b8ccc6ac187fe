// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "cmd/cri-resmgr/flags.h"
#include "pkg/node/node_options.h"
#include "pkg/policy/registry.h"

namespace resmgr {

// The options of a node of this version from the flags: its front door, and the services on its
// other sockets.
NodeOptions OptionsOf(const Flags& flags, const PolicyRegistry& policies, std::string_view version);

}  // namespace resmgr
