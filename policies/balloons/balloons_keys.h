// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/config/config_section.h"
#include "pkg/config/problems.h"
#include "policies/balloons/balloons_options.h"

namespace resmgr {

// The keys of policy.balloons. `problems` gets those that have a place of their own.
void DescribeBalloons(ConfigSection& section, BalloonsOptions& options, Problems& problems);

}  // namespace resmgr
