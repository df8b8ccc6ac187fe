// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace resmgr {

// UTC with milliseconds: "2024-05-06T07:08:09.123Z".
std::string Rfc3339(std::chrono::system_clock::time_point time);

}  // namespace resmgr
