// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/config/config_key.h"

namespace resmgr {

// The manual page cri-resmgr.yaml(5) of a configuration with these keys, in the form of ManPage
// (pkg/cmdline/man_page.h).
std::string ConfigManPage(const std::vector<ConfigKey>& keys);

}  // namespace resmgr
