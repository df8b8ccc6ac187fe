// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// The answer to a new configuration comes after the runtime has moved every container.
inline constexpr std::chrono::milliseconds kPatience{60'000};

// Asks the daemon on its admin socket and waits for the answer, so long at most. `method` is one
// of pkg/admin/admin_service.h. Errors are the daemon's, or kUnavailable, which names the socket,
// when no daemon listens there.
StatusOr<std::string> AskDaemon(const std::string& socket, std::string_view method,
                                std::string_view request,
                                std::chrono::milliseconds patience = kPatience);

}  // namespace resmgr
