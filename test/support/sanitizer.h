// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/sanitizers.h"

namespace resmgr::test {

// Memory and times have no meaning then, and exhaustive loops take minutes.
inline constexpr bool kSanitized = RESMGR_ASAN || RESMGR_TSAN;

}  // namespace resmgr::test
