// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/base/status.h"

namespace resmgr::bench {

// Lets hostile clients attack a `daemon` (a program), in each way that is known and in all ways at
// once, a fresh process each, and prints its memory: before, at the most, and when they have gone.
Status RunHostile(const std::string& daemon);

}  // namespace resmgr::bench
