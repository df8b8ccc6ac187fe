// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// Asks the daemon on its admin socket; waits for the answer, at most a minute. `method` is that of
// pkg/admin/admin_service.h. Errors are the daemon's, or Unavailable, which names the socket, where
// nothing listens or something else than the daemon does.
StatusOr<std::string> AskDaemon(const std::string& socket, std::string_view method,
                                std::string_view request);

}  // namespace resmgr
