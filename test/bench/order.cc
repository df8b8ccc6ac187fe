// SPDX-License-Identifier: Apache-2.0
#include "test/bench/order.h"

#include <algorithm>

namespace resmgr::bench {

std::vector<size_t> OrderOf(size_t round, size_t count) {
  std::vector<size_t> order;
  // 0, 1, -1, 2, -2, ...: all steps differ. An odd count needs each order backwards, too.
  for (size_t i = 0; i < count; ++i) {
    const size_t steps = (i + 1) / 2;
    order.push_back(((i % 2 == 1 ? steps : count - steps) + round) % count);
  }
  if (round / count % 2 == 1) std::ranges::reverse(order);
  return order;
}

}  // namespace resmgr::bench
