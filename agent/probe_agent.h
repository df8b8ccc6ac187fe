// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr::agent {

// Asks an agent's HealthCheck and waits for its answer. kFailedPrecondition: the problem, in its
// words. kUnavailable: no agent answers there.
Status ProbeAgent(const std::string& socket, std::string_view query,
                  std::chrono::milliseconds timeout);

}  // namespace resmgr::agent
