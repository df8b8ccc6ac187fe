// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "webhook/https_session.h"

namespace resmgr::webhook {
namespace {

TEST(StandingTest, OrdersConnectionsByTheirUseAndThenByAge) {
  const auto at = [](int second) {
    return Standing::Clock::time_point(std::chrono::seconds(second));
  };
  const std::vector<Standing> expected = {
      {.reviewed = false, .waiting = true, .proven_at = at(8)},
      {.reviewed = false, .waiting = false, .proven_at = at(9)},
      {.reviewed = true, .waiting = true, .proven_at = at(3)},
      {.reviewed = true, .waiting = true, .proven_at = at(4)},
      {.reviewed = true, .waiting = false, .proven_at = at(1)},
  };
  for (size_t i = 0; i < expected.size(); ++i) {
    for (size_t j = 0; j < expected.size(); ++j)
      EXPECT_EQ(LessUseful(expected[i], expected[j]), i < j) << i << " " << j;
  }
}

}  // namespace
}  // namespace resmgr::webhook
