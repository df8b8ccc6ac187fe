// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/shifts.h"

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/seed.h"

namespace resmgr {
namespace {

using ::testing::IsEmpty;

Placement On(const CpuSet& cpus, const CpuSet& exclusive = {}) {
  Placement placement;
  placement.cpus = cpus | exclusive;
  placement.exclusive = exclusive;
  return placement;
}

TEST(ShiftsTest, OneThatStaysIsNoShift) {
  Shifts shifts;
  shifts.NoteShared(ContainerKey{1}, On({1, 2}), {.cpus = {1, 2}, .containers = {}});
  shifts.Note(ContainerKey{2}, On({1}, {3}), On({1}, {3}));
  EXPECT_THAT(shifts.all(), IsEmpty());
}

TEST(ShiftsTest, NothingOfTheLastDecisionIsCounted) {
  Shifts shifts;
  const SharedChange change{.cpus = {1}, .containers = {}};
  shifts.NoteShared(ContainerKey{1}, On({1, 2}), change);
  shifts.Clear();
  shifts.NoteShared(ContainerKey{2}, On({1, 2}), change);
  ASSERT_EQ(shifts.all().size(), 1U);
  EXPECT_EQ(shifts.all()[0].first, ContainerKey{2});
  EXPECT_EQ(shifts.all()[0].containers, 1U);
}

// Makes a few changes, whose containers come from few places, some with exclusive CPUs of their
// own: each is counted once, together with those that have the same shared CPUs before and after.
TEST(ShiftsTest, CountsThoseThatMoveAlike) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  const std::vector<CpuSet> places = {{1, 2}, {1, 2, 300}, {1}};
  const std::vector<SharedChange> changes = {{.cpus = {1, 2}, .containers = {}},
                                             {.cpus = {1, 700}, .containers = {}}};
  for (int round = 0; round < 200; ++round) {
    Shifts shifts;
    std::map<std::pair<std::string, std::string>, size_t> expected;
    for (uint64_t key = 1; key <= 30; ++key) {
      const CpuSet& from = places[random() % places.size()];
      const SharedChange& change = changes[random() % changes.size()];
      const CpuSet exclusive = random() % 4 == 0 ? CpuSet{8} : CpuSet();
      shifts.NoteShared(ContainerKey{key}, On(from, exclusive), change);
      if (from != change.cpus) ++expected[{from.ToString(), change.cpus.ToString()}];
    }
    std::map<std::pair<std::string, std::string>, size_t> counted;
    for (const Shift& shift : shifts.all())
      counted[{shift.from.cpus->ToString(), shift.to.cpus->ToString()}] += shift.containers;
    ASSERT_EQ(counted, expected) << "round " << round;
    ASSERT_EQ(shifts.all().size(), expected.size()) << "round " << round;
  }
}

}  // namespace
}  // namespace resmgr
