// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/placer.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using testing::HasSubstr;

// Two packages of eight CPUs, of which CPU 0 is reserved.
class PlacerTest : public testing::Test {
 protected:
  static Demand Exclusive(int count) {
    Demand demand;
    demand.need.cpu_class = CpuClass::kExclusive;
    demand.need.full = count;
    return demand;
  }
  static Demand Strict(Demand demand, const CpuSet& near) {
    demand.strict_hints = true;
    if (!near.empty()) demand.hints = {{"device /dev/sda", near, {}}};
    return demand;
  }
  void Run(const Demand& demand) {
    const StatusOr<Grant> grant = placer_.Place(demand);
    ASSERT_TRUE(grant.ok()) << grant.status();
    book_.Give(static_cast<ContainerKey>(++keys_), *grant);
  }
  std::string Refusal(const Demand& demand) {
    const StatusOr<Grant> grant = placer_.Place(demand);
    EXPECT_EQ(grant.status().code(), StatusCode::kResourceExhausted);
    return std::string(Message(grant.status()));
  }

  const Machine machine_ = test::MakeMachine({.packages = 2, .cores = 8});
  GrantBook book_{machine_, machine_.online(), test::Cpus("0"), true};
  const Placer placer_{book_};

 private:
  uint64_t keys_ = 0;
};

TEST_F(PlacerTest, WithoutHintsAStrictRefusalTellsTheShortage) {
  Run(Exclusive(14));
  const std::string plain = Refusal(Exclusive(2));
  EXPECT_THAT(plain, HasSubstr("needs 2 exclusive CPUs, 1 of 16 free"));
  EXPECT_THAT(plain, HasSubstr("root: 1"));
  EXPECT_EQ(Refusal(Strict(Exclusive(2), {})), plain);
}

TEST_F(PlacerTest, AStrictRefusalTellsWhatThePoolsNearItsDevicesHave) {
  Run(Exclusive(13));
  EXPECT_EQ(Refusal(Strict(Exclusive(3), test::Cpus("8"))),
            "needs 3 exclusive CPUs, but no pool that is near to all its devices and volumes can "
            "grant them now (socket #1: 0, root: 2)");
  const std::string nowhere = Refusal(Strict(Exclusive(1), test::Cpus("500")));
  EXPECT_THAT(nowhere, HasSubstr("no pool is near to all its devices and volumes (socket #0: 2"));
}

TEST_F(PlacerTest, StrictHintsRefuseNoSharingContainerForCpuTime) {
  Demand demand;
  demand.need.fraction = 20'000;
  for (const CpuSet& near : {CpuSet(), test::Cpus("8")}) {
    const StatusOr<Grant> grant = placer_.Place(Strict(demand, near));
    ASSERT_TRUE(grant.ok()) << grant.status();
    EXPECT_EQ(grant->pool, book_.tree().root());
  }
  EXPECT_THAT(Refusal(Strict(demand, test::Cpus("500"))),
              HasSubstr("needs 20000m of shared CPUs, but no pool is near"));
}

Demand SomeDemand(std::mt19937_64& random) {
  Demand demand;
  Need& need = demand.need;
  need.packing = random() % 2 == 0 ? Packing::kAuto : Packing::kTight;
  if (random() % 2 == 0) {
    need.cpu_class = CpuClass::kExclusive;
    need.full = 1 + static_cast<int>(random() % 6);
    if (random() % 4 == 0) need.fraction = 500;
    return demand;
  }
  need.fraction = static_cast<int64_t>(random() % 4) * 600;
  if (random() % 2 == 0) need.cpu_limit = 2 * need.fraction;
  need.unlimited = random() % 4 == 0;
  return demand;
}

// Most pools are counted only as far as shows that they are not among the best.
TEST(PlacerCandidatesTest, AreTheBestOfAllPoolsByAllRules) {
  const Machine machine = test::MakeMachine({.packages = 2, .nodes = 2, .l3s = 4, .cores = 16});
  std::mt19937_64 random(1);
  for (int run = 0; run < 5; ++run) {
    GrantBook book(machine, machine.online(), test::Cpus("0"), true);
    const Placer placer(book);
    for (uint64_t step = 0; step < 200; ++step) {
      const Demand demand = SomeDemand(random);
      std::vector<PoolScore> all;
      for (const Pool& pool : book.tree().pools())
        all.push_back(placer.Score(demand, pool.id));
      std::ranges::sort(
          all, [](const PoolScore& a, const PoolScore& b) { return Compare(a, b).order > 0; });
      const StatusOr<Grant> grant = placer.Place(demand);
      if (step % 3 == 2) book.Take(static_cast<ContainerKey>(random() % step));
      if (!grant.ok()) continue;
      ASSERT_EQ(grant->candidates.size(), 8U);
      for (size_t i = 0; i < grant->candidates.size(); ++i) {
        ASSERT_EQ(grant->candidates[i].pool, all[i].pool) << i;
        ASSERT_EQ(Compare(grant->candidates[0], grant->candidates[i]).rule,
                  Compare(all[0], all[i]).rule);
      }
      if (step % 3 == 2) continue;
      const CpuSet granted = grant->exclusive;
      book.Give(static_cast<ContainerKey>(step), *grant);
      book.MakeRoom(granted);
      book.MoveBack();
    }
  }
}

}  // namespace
}  // namespace resmgr
