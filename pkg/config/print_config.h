// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/config/config.h"

namespace resmgr {

// The configuration as YAML, defaults included; ParseConfig reads it back unchanged.
std::string PrintConfig(const Config& config);
// A part of a configuration, which may be empty, in the same form.
std::string PrintNode(const ConfigNode& node);

}  // namespace resmgr
