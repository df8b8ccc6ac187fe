// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace resmgr::bench {

// Serves the Docker API on this socket as a lean engine does, for ever: any request has the same
// reply, as long as that of `GET /version`, and its body is read and dropped. A thread for each
// connection, as in dockerd.
int ServeCannedEngine(const std::string& socket);

}  // namespace resmgr::bench
