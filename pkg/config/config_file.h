// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/config/config.h"

namespace resmgr {

// The configuration that a file's `text` holds, in whichever of the two formats it is
// (config_format.h); `source` is what messages call it. Options that are no part of the
// configuration, such as the daemon's sockets, are passed over: they are for its start.
// InvalidArgument in one line, with "SOURCE:LINE". Thread-safe.
StatusOr<Config> ParseConfigFile(std::string_view text, std::string_view source,
                                 const ConfigChecks& checks);

}  // namespace resmgr
