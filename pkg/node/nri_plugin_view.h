// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/node/plugin_view.h"
#include "pkg/nri/host/session/plugin_registry.h"

namespace resmgr {

// The NRI plugins in the form of a front door's plugins.
std::vector<PluginView> ViewsOf(const std::vector<nri::PluginStatus>& plugins);

}  // namespace resmgr
