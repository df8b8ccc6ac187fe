// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/model/container_details.h"

namespace resmgr {

// Adds what a LinuxContainerSecurityContext (CRI runtime.v1) says. Numbers that its enumerations do
// not have count as not said. False: the bytes are no such message, and some of it is missing.
bool DecodeSecurity(std::string_view message, ContainerSecurity& security);

}  // namespace resmgr
