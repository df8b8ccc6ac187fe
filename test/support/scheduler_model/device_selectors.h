// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "test/support/scheduler_model/device_pools.h"

namespace resmgr::test {

// Whether a device matches a CEL expression. Known are terms joined by "&&":
//   device.driver == "DRIVER"
//   device.attributes["DOMAIN"].NAME == VALUE      a number, a string, true or false
// Anything else throws std::invalid_argument. A missing attribute does not match.
bool MatchesSelector(const PoolDevice& device, std::string_view expression);

}  // namespace resmgr::test
