// SPDX-License-Identifier: Apache-2.0
// The choice of containers that move when a node fills up.
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/policy/testing/checked_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using enum QosClass;
constexpr int64_t kGibi = int64_t{1} << 30;

// One package with L3 groups 0-3, 4-7, 8-11 and 12-15; CPU 0 is reserved. 16 GiB.
class RoomTest : public testing::Test, protected test::CheckedPolicy {
 protected:
  explicit RoomTest(Machine present = test::U16()) : CheckedPolicy(std::move(present)) {
    MakePolicy();
  }

  void MakePolicy() {
    SetPolicy(TopologyAwarePolicy::Create(
        {.machine = machine(), .available = machine().online(), .reserved = test::Cpus("0")}));
  }
  StatusOr<ContainerKey> TryRun(std::string_view name, QosClass qos, int64_t milli_cpu,
                                int64_t memory = 0, bool estimated = false) {
    Container& container = snapshot().Add(name, qos, milli_cpu);
    container.requirements.memory_request.value = memory;
    container.requirements.memory_estimated = estimated;
    const ContainerKey key = container.key;
    RESMGR_RETURN_IF_ERROR(Place(key));
    return key;
  }
  ContainerKey Run(std::string_view name, QosClass qos, int64_t milli_cpu, int64_t memory = 0,
                   bool estimated = false) {
    const auto key = TryRun(name, qos, milli_cpu, memory, estimated);
    EXPECT_TRUE(key.ok()) << key.status();
    return key.ok() ? *key : ContainerKey{};
  }
  Status Resize(ContainerKey key, int64_t milli_cpu) {
    snapshot().At(key).requirements.cpu_request.value = milli_cpu;
    return Update(key);
  }
  // A restart without saved state: only the runtime's knowledge is left.
  void Forget() {
    snapshot().ForEachContainer([this](const Pod&, const Container& container) {
      Placement known;
      known.cpus = container.placement.cpus;
      known.mems = container.placement.mems;
      snapshot().At(container.key).placement = known;
    });
    MakePolicy();
  }
};

TEST_F(RoomTest, SharersMoveUpBeforeAnExclusiveSetIsSplitAndComeBackAfterIt) {
  std::vector<ContainerKey> sharers;
  for (int i = 0; i < 4; ++i)
    sharers.push_back(Run("tiny", kGuaranteed, 100));
  std::set<std::string> pools;
  std::vector<std::string> before;
  for (const ContainerKey key : sharers) {
    pools.insert(PlacementOf(key).pool);
    before.push_back(CpusOf(key));
  }
  ASSERT_EQ(pools.size(), 4U) << "each L3 group has one";
  const ContainerKey own = Run("own", kGuaranteed, 4000);
  EXPECT_TRUE(PlacementOf(own).pool.starts_with("L3 cache")) << PlacementOf(own).pool;
  int moved = 0;
  for (const ContainerKey key : sharers) {
    if (PlacementOf(key).pool == "socket #0") ++moved;
  }
  EXPECT_EQ(moved, 1);
  Remove(own);
  for (size_t i = 0; i < sharers.size(); ++i)
    EXPECT_EQ(CpusOf(sharers[i]), before[i]);
}

TEST_F(RoomTest, AContainerThatMovedUpStaysThereAfterARestart) {
  for (int i = 0; i < 4; ++i)
    Run("tiny", kGuaranteed, 100, kGibi);
  const ContainerKey own = Run("own", kGuaranteed, 4000);
  for (const bool restart : {true, false}) {
    if (restart) MakePolicy();
    EXPECT_TRUE(Reconcile().empty());
  }
  Remove(own);
  EXPECT_TRUE(Reconcile().empty());
}

TEST_F(RoomTest, TinySharersCostNoWholeCpus) {
  for (int i = 0; i < 10; ++i)
    Run("tiny", kBurstable, 100);
  const ContainerKey own = Run("own", kGuaranteed, 14'000);
  EXPECT_EQ(PlacementOf(own).exclusive.size(), 14);
  EXPECT_FALSE(TryRun("more", kGuaranteed, 1000).ok()) << "1000m are shared";
}

TEST_F(RoomTest, WhenAllElseIsExclusiveSharersRunOnReservedCpus) {
  const ContainerKey first = Run("first", kBestEffort, 0);
  const ContainerKey own = Run("own", kGuaranteed, 15'000);
  const ContainerKey second = Run("second", kBestEffort, 0);
  EXPECT_EQ(CpusOf(own), "1-15");
  EXPECT_EQ(CpusOf(first), "0");
  EXPECT_EQ(CpusOf(second), "0");
  for (const bool restart : {true, false}) {
    if (restart) MakePolicy();
    EXPECT_TRUE(Reconcile().empty());
  }
  Remove(own);
  EXPECT_FALSE(PlacementOf(first).cpus->Contains(0)) << CpusOf(first);
  EXPECT_EQ(CpusOf(second), "1-15");
}

TEST_F(RoomTest, TheFractionOfAMixedPlaceMayLieInALargerPool) {
  for (int i = 0; i < 3; ++i)
    Run("own", kGuaranteed, 4000);
  Run("burst", kBurstable, 300);
  const ContainerKey mixed = Run("mixed", kGuaranteed, 1500);
  const ContainerKey other = Run("other", kGuaranteed, 1200);
  EXPECT_EQ(PlacementOf(mixed).exclusive.size(), 1);
  EXPECT_EQ(PlacementOf(other).exclusive.size(), 1);
  EXPECT_EQ(PlacementOf(mixed).cpus->size(), 2);
}

TEST_F(RoomTest, AResizeDownIsNotRefusedWhereSharingWillDo) {
  Run("own", kGuaranteed, 12'000);
  const ContainerKey key = snapshot().Add("found", kGuaranteed, 6000).key;
  Reconcile();
  ASSERT_TRUE(PlacementOf(key).exclusive.empty()) << "there is no room for it";
  Status status = Resize(key, 4000);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(PlacementOf(key).reason,
              HasSubstr("shared for want of room: needs 4 exclusive CPUs"));
  EXPECT_EQ(CpusOf(key), "1-3");
  EXPECT_EQ(Resize(key, 5000).code(), StatusCode::kResourceExhausted) << "it asks for more";
  snapshot().At(key).requirements.cpu_request.value = 4000;
  status = Resize(key, 3000);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(PlacementOf(key).exclusive.ToString(), "1-3");
}

TEST_F(RoomTest, AContainerWithFewerCpusThanItAsksForGetsMoreByARebalanceOnly) {
  const ContainerKey other = Run("other", kGuaranteed, 11'000);
  Container& few = snapshot().Add("few", kGuaranteed, 6000);
  const CpuSet four = test::Cpus("1-15") - PlacementOf(other).exclusive;
  few.placement.cpus = few.placement.exclusive = four;
  Reconcile();
  ASSERT_EQ(PlacementOf(few.key).exclusive, four) << "there are no more";
  EXPECT_THAT(PlacementOf(few.key).reason, HasSubstr("fewer than it asks for"));
  EXPECT_TRUE(Resize(few.key, 6000).ok()) << "an update of something else";
  EXPECT_EQ(PlacementOf(few.key).exclusive, four);
  Remove(other);
  for (const bool restart : {false, true}) {
    if (restart) MakePolicy();
    EXPECT_TRUE(Reconcile().empty());
  }
  Rebalance();
  EXPECT_EQ(PlacementOf(few.key).exclusive.size(), 6);
  EXPECT_TRUE(four.IsSubsetOf(PlacementOf(few.key).exclusive));
  EXPECT_TRUE(Rebalance().empty());
}

TEST_F(RoomTest, AContainerThatSharesForWantOfRoomStaysWithoutSavedState) {
  const ContainerKey other = Run("other", kGuaranteed, 8000);
  Run("own", kGuaranteed, 4000);
  const ContainerKey key = snapshot().Add("found", kGuaranteed, 6000).key;
  Reconcile();
  ASSERT_TRUE(PlacementOf(key).exclusive.empty()) << "there is no room for it";
  ASSERT_EQ(PlacementOf(key).cpus->size(), 3);
  Forget();
  Reconcile();
  EXPECT_EQ(PlacementOf(key).cpus->size(), 3);
  Remove(other);
  const std::string shared = CpusOf(key);
  Forget();
  Reconcile();
  EXPECT_EQ(CpusOf(key), shared);
  EXPECT_TRUE(PlacementOf(key).exclusive.empty());
  Rebalance();
  EXPECT_EQ(PlacementOf(key).exclusive.size(), 6);
}

TEST_F(RoomTest, AContainerOnLentReservedCpusStaysWithoutSavedState) {
  const ContainerKey own = Run("own", kGuaranteed, 14'000);
  Run("last", kGuaranteed, 1000);
  const ContainerKey key = snapshot().Add("found", kGuaranteed, 2000).key;
  const ContainerKey small = Run("small", kBestEffort, 0);
  Reconcile();
  ASSERT_EQ(CpusOf(key), "0");
  Forget();
  Reconcile();
  EXPECT_EQ(CpusOf(key), "0");
  EXPECT_EQ(CpusOf(small), "0");
  EXPECT_EQ(PlacementOf(own).exclusive.size(), 14);
}

// Two nodes of eight CPUs and 16 GiB.
class TwoNodeRoomTest : public RoomTest {
 protected:
  TwoNodeRoomTest() : RoomTest(test::U16TwoNodes()) {}
};

TEST_F(TwoNodeRoomTest, AContainerThatGrowsInAnOverfullPoolKeepsItsCpusAndMemory) {
  const ContainerKey own = Run("own", kGuaranteed, 2000, 10 * kGibi);
  const std::string pool = PlacementOf(own).pool;
  const CpuSet held = PlacementOf(own).exclusive;
  const NodeSet mems = *PlacementOf(own).mems;
  ASSERT_EQ(mems.size(), 1);
  // Running containers are never refused: they ask for more CPUs and memory than the node has.
  for (int i = 0; i < 4; ++i) {
    Container& found = snapshot().Add("found", kBurstable, 2000);
    found.placement.cpus = machine().l3_groups()[1] - held;
    found.placement.mems = mems;
    found.placement.pool = pool;
    found.requirements.memory_request.value = 3 * kGibi;
  }
  ASSERT_EQ(pool, "L3 cache #1");
  Reconcile();
  ASSERT_EQ(PlacementOf(own).exclusive, held);
  const NodeSet widened = *PlacementOf(own).mems;
  ASSERT_TRUE(mems.IsSubsetOf(widened));
  for (const int64_t milli_cpu : {3000, 4000, 4000}) {
    const Status status = Resize(own, milli_cpu);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(PlacementOf(own).exclusive.size(), milli_cpu / 1000);
    EXPECT_TRUE(held.IsSubsetOf(PlacementOf(own).exclusive)) << CpusOf(own);
    EXPECT_TRUE(widened.IsSubsetOf(*PlacementOf(own).mems)) << PlacementOf(own).mems->ToString();
  }
}

TEST_F(RoomTest, AnEstimatedMemoryRequestRefusesNoContainer) {
  const ContainerKey sidecar = Run("sidecar", kBurstable, 100, 80 * kGibi, true);
  EXPECT_THAT(PlacementOf(sidecar).reason, HasSubstr("estimated as 80 GiB, does not count"));
  Run("guessed", kBurstable, 100, 15 * kGibi, true);
  const ContainerKey certain = Run("certain", kGuaranteed, 1000, 10 * kGibi);
  EXPECT_EQ(PlacementOf(certain).mems->ToString(), "0");
  Run("rest", kGuaranteed, 1000, 6 * kGibi);
  const auto refused = TryRun("too much", kGuaranteed, 1000, kGibi);
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(refused.status())),
              HasSubstr("needs 1 GiB of memory, but only 0 of 16 GiB are free: 10 GiB held by "
                        "ns/certain/certain, 6 GiB held by ns/rest/rest"));
  MakePolicy();
  EXPECT_TRUE(Reconcile().empty());
}

}  // namespace
}  // namespace resmgr
