// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// Whether a class can have this name: 1 to 63 printable ASCII characters. InvalidArgument: it has
// others.
Status CheckClassName(std::string_view name);

}  // namespace resmgr
