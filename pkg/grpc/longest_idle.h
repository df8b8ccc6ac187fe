// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <tuple>

namespace resmgr {

// Which of the clients has to go where a new one finds no room: one without calls before one with,
// and of these the one that was active least recently. `clients` are pointers to what has busy()
// and last_active(), and not empty.
template <typename Clients>
auto& LongestIdle(Clients& clients) {
  return **std::min_element(clients.begin(), clients.end(), [](const auto& a, const auto& b) {
    return std::tuple(a->busy(), a->last_active()) < std::tuple(b->busy(), b->last_active());
  });
}

}  // namespace resmgr
