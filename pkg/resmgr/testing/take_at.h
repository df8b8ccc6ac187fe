// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace resmgr::test {

// Removes the element at `index`, which must exist, and returns it.
template <typename T>
T TakeAt(std::vector<T>& from, size_t index) {
  const auto at = from.begin() + static_cast<std::ptrdiff_t>(index);
  T taken = std::move(*at);
  from.erase(at);
  return taken;
}

}  // namespace resmgr::test
