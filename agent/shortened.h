// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace resmgr::agent {

// At most `limit` bytes of UTF-8; what was cut ends with "...". `limit` is more than those.
std::string Shortened(std::string text, size_t limit);

}  // namespace resmgr::agent
