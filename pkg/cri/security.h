// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/model/container_details.h"

namespace resmgr {

// Adds the values of a LinuxContainerSecurityContext (CRI runtime.v1). Unknown enumerators count as
// unset. False: the message is malformed, and some values are missing.
bool DecodeSecurity(std::string_view message, ContainerSecurity& security);

}  // namespace resmgr
