// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// Asks the daemon on its admin socket and waits for the answer, at most a minute. `method` is one
// of pkg/admin/admin_service.h. Errors are the daemon's, or kUnavailable, which names the socket,
// when no daemon listens there.
StatusOr<std::string> AskDaemon(const std::string& socket, std::string_view method,
                                std::string_view request);

}  // namespace resmgr
