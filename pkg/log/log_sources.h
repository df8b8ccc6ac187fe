// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace resmgr {

// The sources of log lines that exist so far, ascending. Thread-safe.
std::vector<std::string> LogSources();

}  // namespace resmgr
