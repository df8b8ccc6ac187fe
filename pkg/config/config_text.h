// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

inline constexpr size_t kMaxConfigSize = size_t{1} << 20;

// The text without a byte order mark, once it is sure to be text at all. InvalidArgument
// "SOURCE:LINE: ..." when it is longer than `max_size` or holds control characters: a library
// would take some of them for the end.
StatusOr<std::string_view> CheckConfigText(std::string_view text, std::string_view source,
                                           size_t max_size = kMaxConfigSize);

}  // namespace resmgr
