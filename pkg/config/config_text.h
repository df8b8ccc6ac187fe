// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

inline constexpr size_t kMaxConfigSize = size_t{1} << 20;

// Checks that the contents are text, and removes a byte order mark. kInvalidArgument "SOURCE:LINE:
// ..." if it has more than `max_size` bytes or control characters, some of which a library would
// take for the end.
StatusOr<std::string_view> CheckConfigText(std::string_view text, std::string_view source,
                                           size_t max_size = kMaxConfigSize);

}  // namespace resmgr
