// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/node/plugin_view.h"
#include "pkg/nri/host/plugin_registry.h"

namespace resmgr {

// NRI plugins among those of a front door.
std::vector<PluginView> ViewsOf(const std::vector<nri::PluginStatus>& plugins);

}  // namespace resmgr
