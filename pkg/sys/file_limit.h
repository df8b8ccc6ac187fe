// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace resmgr {

// Raises the number of files that this process may have open to its hard limit, and returns that
// number. The usual soft limit of 1024 is for programs that use select().
size_t RaiseFileLimit();

}  // namespace resmgr
