// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/config/config.h"

namespace resmgr {

// The configuration in force as YAML, defaults included; ParseConfig reads it back to the same.
std::string PrintConfig(const Config& config);
// A part of it, or none of it, likewise.
std::string PrintNode(const ConfigNode& node);

}  // namespace resmgr
