// SPDX-License-Identifier: Apache-2.0
#include "test/support/placement_trail/placement_trail.h"

#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(PlacementTrailTest, EndsWithWhatIsNow) {
  std::mutex mutex;
  Placements now = {{"a", CpuSet{0}}};
  PlacementTrail trail([&] {
    const std::lock_guard lock(mutex);
    return now;
  });
  EXPECT_EQ(trail.Take().back(), (Placements{{"a", CpuSet{0}}}));
  {
    const std::lock_guard lock(mutex);
    now["a"] = CpuSet{1};
  }
  EXPECT_THAT(trail.Take(),
              ElementsAre(Placements{{"a", CpuSet{0}}}, Placements{{"a", CpuSet{1}}}));
  EXPECT_THAT(trail.Take(), ElementsAre(Placements{{"a", CpuSet{1}}}));
}

TEST(ViolationsTest, NoContainerComesToExclusiveCpus) {
  const Grants grants = {{"a", {CpuSet{1}, CpuSet{1}}}};
  const Placements apart = {{"a", CpuSet{1}}, {"b", CpuSet{0, 2}}};
  const Placements together = {{"a", CpuSet{1}}, {"b", CpuSet{0, 1}}};
  for (const auto& [before, after] : {std::pair(grants, Grants()), std::pair(Grants(), grants)}) {
    EXPECT_THAT(Violations({apart}, before, after), IsEmpty());
    EXPECT_THAT(Violations({apart, together}, before, after),
                ElementsAre("b on 0-1 meets a, which has 1 for itself"));
    EXPECT_THAT(Violations({together}, before, after), SizeIs(1));
  }
}

TEST(ViolationsTest, EarlierSharersMayLeaveLater) {
  const Grants grants = {{"a", {CpuSet{1}, CpuSet{1}}}};
  EXPECT_THAT(Violations({{{"a", CpuSet{0, 1}}, {"b", CpuSet{0, 1}}},
                          {{"a", CpuSet{1}}, {"b", CpuSet{0, 1}}},
                          {{"a", CpuSet{1}}, {"b", CpuSet{0}}}},
                         {}, grants),
              IsEmpty());
}

TEST(ViolationsTest, SharesWhatIsNotItsOwn) {
  const Grants grants = {{"a", {CpuSet{0, 1}, CpuSet{1}}}};
  EXPECT_THAT(Violations({{{"a", CpuSet{0, 1}}, {"b", CpuSet{0}}}}, grants, {}), IsEmpty());
  EXPECT_THAT(Violations({{{"a", CpuSet{0, 1}}, {"b", CpuSet{1}}}}, grants, {}), SizeIs(1));
}

TEST(ViolationsTest, EveryContainerHasACpu) {
  EXPECT_THAT(Violations({{{"a", CpuSet()}}}, {}, {}), ElementsAre(HasSubstr("no CPU")));
}

TEST(DifferencesTest, NamesContainersThatAreElsewhere) {
  const Grants grants = {{"a", {CpuSet{1}, CpuSet()}}};
  EXPECT_THAT(Differences({{"a", CpuSet{1}}}, grants), IsEmpty());
  EXPECT_THAT(Differences({{"a", CpuSet{2}}}, grants), ElementsAre("a is on 2 in place of 1"));
  EXPECT_THAT(Differences({}, grants), SizeIs(1));
}

}  // namespace
}  // namespace resmgr::test
