// SPDX-License-Identifier: Apache-2.0
#include "test/bench/order.h"

#include <map>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace resmgr::bench {
namespace {

TEST(OrderTest, EachCandidateIsInEachRoundOnce) {
  for (size_t count = 1; count < 8; ++count) {
    for (size_t round = 0; round < 4 * count; ++round) {
      const std::vector<size_t> order = OrderOf(round, count);
      const std::set<size_t> all(order.begin(), order.end());
      EXPECT_EQ(order.size(), count);
      EXPECT_EQ(all.size(), count);
      EXPECT_LT(*all.rbegin(), count);
    }
  }
}

TEST(OrderTest, EachCandidateFollowsEachOtherOneEquallyOften) {
  for (size_t count = 2; count < 8; ++count) {
    std::map<std::pair<size_t, size_t>, int> follows;
    for (size_t round = 0; round < 2 * count; ++round) {
      const std::vector<size_t> order = OrderOf(round, count);
      for (size_t i = 1; i < count; ++i)
        ++follows[{order[i - 1], order[i]}];
    }
    EXPECT_EQ(follows.size(), count * (count - 1));
    for (const auto& [pair, times] : follows)
      EXPECT_EQ(times, 2) << pair.first << " before " << pair.second << " of " << count;
  }
}

TEST(OrderTest, EachCandidateIsEquallyOftenAtEachPlace) {
  for (size_t count = 2; count < 8; ++count) {
    std::map<std::pair<size_t, size_t>, int> places;
    for (size_t round = 0; round < 2 * count; ++round) {
      const std::vector<size_t> order = OrderOf(round, count);
      for (size_t i = 0; i < count; ++i)
        ++places[{i, order[i]}];
    }
    EXPECT_EQ(places.size(), count * count);
    for (const auto& [place, times] : places)
      EXPECT_EQ(times, 2);
  }
}

}  // namespace
}  // namespace resmgr::bench
