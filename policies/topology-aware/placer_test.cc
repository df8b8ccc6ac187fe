// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/placer.h"

#include <string>

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

}  // namespace
}  // namespace resmgr
