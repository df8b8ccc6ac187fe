// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace resmgr {

// Amounts of memory as people read them, to a tenth.

// In the largest unit of which there is at least one: "32 MiB", "1.5 GiB", "0".
std::string BytesText(int64_t bytes);
// "4 of 32 GiB", "32 MiB of 2 GiB"
std::string BytesOf(int64_t used, int64_t bytes);

}  // namespace resmgr
