// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/selections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using ::testing::ElementsAre;

std::vector<std::vector<int>> AllSelections(const std::vector<int>& sizes, int pick) {
  std::vector<std::vector<int>> all;
  ForEachSelection(sizes, pick, [&all](const std::vector<int>& counts) {
    all.push_back(counts);
    return true;
  });
  return all;
}

TEST(SelectionsTest, FirstClassesComeFirst) {
  EXPECT_THAT(AllSelections({2, 1, 2}, 2),
              ElementsAre(ElementsAre(2, 0, 0), ElementsAre(1, 1, 0), ElementsAre(1, 0, 1),
                          ElementsAre(0, 1, 1), ElementsAre(0, 0, 2)));
}

TEST(SelectionsTest, EqualThingsGiveOneSelection) {
  EXPECT_THAT(AllSelections({64}, 30), ElementsAre(ElementsAre(30)));
}

TEST(SelectionsTest, PickingMoreThanThereIsGivesNone) {
  EXPECT_TRUE(AllSelections({1, 1}, 3).empty());
  EXPECT_EQ(CountSelections({1, 1}, 3, 100), 0);
}

TEST(SelectionsTest, CountsWhatItVisits) {
  const std::vector<std::vector<int>> classes = {{1, 1, 1, 1, 1, 1, 1, 1}, {3, 1, 4}, {2, 2}, {5}};
  for (const std::vector<int>& sizes : classes) {
    for (int pick = 0; pick <= 5; ++pick) {
      EXPECT_EQ(CountSelections(sizes, pick, 1000),
                static_cast<int64_t>(AllSelections(sizes, pick).size()));
    }
  }
}

TEST(SelectionsTest, CountStopsAtTheLimit) {
  EXPECT_EQ(CountSelections(std::vector<int>(64, 1), 32, 5000), 5000);
}

TEST(SelectionsTest, VisitorMayStop) {
  int visits = 0;
  ForEachSelection({1, 1, 1}, 1, [&visits](const std::vector<int>&) { return ++visits < 2; });
  EXPECT_EQ(visits, 2);
}

}  // namespace
}  // namespace resmgr
