// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace resmgr::bench {

// The order in which `count` candidates are measured in this round. In each 2 * count rounds in a
// row each candidate is equally often at each place and equally often right behind each other one,
// so that caches and memory that the one before leaves behind favour none (a Williams design).
std::vector<size_t> OrderOf(size_t round, size_t count);

}  // namespace resmgr::bench
