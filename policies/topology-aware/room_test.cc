// SPDX-License-Identifier: Apache-2.0
// The choice of containers that move when a node fills up.
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "policies/topology-aware/options.h"
#include "policies/topology-aware/packing.h"
#include "policies/topology-aware/placer.h"
#include "policies/topology-aware/rebalancer.h"
#include "policies/topology-aware/testing/topology_node.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using enum QosClass;

constexpr int64_t kGibi = int64_t{1} << 30;

// One package with L3 groups 0-3, 4-7, 8-11 and 12-15; CPU 0 is reserved. 16 GiB.
class RoomTest : public testing::Test, protected test::TopologyNode {
 protected:
  explicit RoomTest(Machine present = test::U16()) : TopologyNode(std::move(present)) {}

  StatusOr<ContainerKey> TryRun(std::string_view name, QosClass qos, int64_t milli_cpu,
                                int64_t memory = 0, bool estimated = false) {
    Container& container = snapshot().Add(name, qos, milli_cpu);
    container.requirements.memory_request.value = memory;
    container.requirements.memory_estimated = estimated;
    return Place(container.key);
  }
  ContainerKey Run(std::string_view name, QosClass qos, int64_t milli_cpu, int64_t memory = 0,
                   bool estimated = false) {
    const auto key = TryRun(name, qos, milli_cpu, memory, estimated);
    EXPECT_TRUE(key.ok()) << key.status();
    return key.ok() ? *key : ContainerKey{};
  }
};

TEST_F(RoomTest, SharersMoveUpBeforeAnExclusiveSetIsSplitAndComeBackAfterIt) {
  std::vector<ContainerKey> sharers;
  sharers.reserve(4);
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
    const std::string verdict = policy().Considered(key).front().verdict;
    if (PlacementOf(key).pool == "socket #0") {
      ++moved;
      EXPECT_THAT(verdict, HasSubstr("it is in socket #0 now"));
    } else {
      EXPECT_EQ(verdict, "taken: the best");
    }
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
    if (restart) RestartPolicy();
    EXPECT_TRUE(Reconcile().empty());
  }
  Remove(own);
  EXPECT_TRUE(Reconcile().empty());
}

// Without the large one the small one would have room in the cache again, and the large one none
// later.
TEST_F(RoomTest, NoContainerTakesTheRoomOfOneThatMovesUp) {
  const auto run_near = [this](std::string_view name, QosClass qos, int64_t milli_cpu) {
    Container& container = snapshot().Add(name, qos, milli_cpu);
    container.hints = {{"device /dev/x", test::Cpus("4-7"), {}}};
    container.requirements.cpu_limit.value = qos == kBurstable ? 2000 : milli_cpu;
    EXPECT_TRUE(Place(container.key).ok()) << name;
    return container.key;
  };
  const ContainerKey large = run_near("large", kBurstable, 1500);
  const ContainerKey small = run_near("small", kBurstable, 600);
  run_near("first", kGuaranteed, 2000);
  ASSERT_EQ(PlacementOf(small).pool, "socket #0");
  ASSERT_EQ(PlacementOf(large).pool, "L3 cache #1");
  const ContainerKey second = run_near("second", kGuaranteed, 1000);
  EXPECT_EQ(PlacementOf(large).pool, "socket #0");
  EXPECT_EQ(PlacementOf(small).pool, "socket #0");
  Remove(second);
  EXPECT_EQ(PlacementOf(large).pool, "L3 cache #1");
  EXPECT_EQ(PlacementOf(small).pool, "socket #0");
}

// A copy replaces the policy after a refused claim.
TEST_F(RoomTest, ACopyMovesSharersBackAsWell) {
  std::vector<ContainerKey> sharers;
  sharers.reserve(4);
  for (int i = 0; i < 4; ++i)
    sharers.push_back(Run("tiny", kGuaranteed, 100));
  std::vector<std::string> before;
  before.reserve(sharers.size());
  for (const ContainerKey key : sharers)
    before.push_back(CpusOf(key));
  const ContainerKey own = Run("own", kGuaranteed, 4000);
  SetPolicy(policy().Clone());
  Remove(own);
  for (size_t i = 0; i < sharers.size(); ++i)
    EXPECT_EQ(CpusOf(sharers[i]), before[i]);
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
    if (restart) RestartPolicy();
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
    if (restart) RestartPolicy();
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
  ForgetDecisions();
  Reconcile();
  EXPECT_EQ(PlacementOf(key).cpus->size(), 3);
  Remove(other);
  const std::string shared = CpusOf(key);
  ForgetDecisions();
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
  ForgetDecisions();
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
  RestartPolicy();
  EXPECT_TRUE(Reconcile().empty());
}

// Four NUMA nodes of eight CPUs, 0-7, 8-15, ...; nothing is reserved.
class PackingTest : public testing::Test {
 protected:
  static Demand Exclusive(int count, Packing packing = Packing::kAuto) {
    Demand demand;
    demand.need.cpu_class = CpuClass::kExclusive;
    demand.need.full = count;
    demand.need.packing = packing;
    return demand;
  }
  static Demand Shared(int64_t milli, Packing packing = Packing::kAuto) {
    Demand demand;
    demand.need.fraction = milli;
    demand.need.packing = packing;
    return demand;
  }
  // The pool of the grant.
  std::string Run(const Demand& demand) {
    StatusOr<Grant> grant = placer_.Place(demand);
    EXPECT_TRUE(grant.ok()) << grant.status();
    last_ = *grant;
    const CpuSet taken = grant->exclusive;
    book_.Give(static_cast<ContainerKey>(++keys_), *std::move(grant));
    moved_ = book_.MakeRoom(taken).size();
    return book_.tree().at(last_.pool).name;
  }
  // Exclusive CPUs of a node.
  void Fill(int node, int count) {
    Demand demand = Exclusive(count);
    demand.hints = {{"device", machine_.nodes()[static_cast<size_t>(node)].cpus, {}}};
    EXPECT_EQ(Run(demand), fmt::format("NUMA node #{}", node));
  }

  const Machine machine_ = test::MakeMachine({.packages = 1, .nodes = 4, .cores = 8});
  GrantBook book_{machine_, machine_.online(), CpuSet(), true};
  const Placer placer_{book_};
  Grant last_;
  size_t moved_ = 0;

 private:
  uint64_t keys_ = 0;
};

TEST_F(PackingTest, SpreadsUntilHalfIsAskedForThenFillsHoles) {
  std::set<std::string> nodes;
  for (int i = 0; i < 4; ++i)
    nodes.insert(Run(Exclusive(3)));
  EXPECT_EQ(nodes.size(), 4U) << "mostly empty";
  Fill(2, 3);
  Run(Shared(1000));
  EXPECT_EQ(2 * book_.cpus().Room(book_.tree().root()), 32'000);
  EXPECT_FALSE(IsPacked(book_, Exclusive(1).need));
  Run(Shared(100));
  EXPECT_TRUE(IsPacked(book_, Exclusive(1).need)) << "what is shared counts too";
  EXPECT_EQ(Run(Exclusive(2)), "NUMA node #2") << "two were left";
  EXPECT_THAT(last_.reason, HasSubstr("a tighter fit"));
}

TEST_F(PackingTest, TheOptionPacksAlwaysOrNever) {
  std::set<std::string> tight;
  std::set<std::string> spread;
  for (int i = 0; i < 4; ++i)
    tight.insert(Run(Exclusive(2, Packing::kTight)));
  EXPECT_EQ(tight.size(), 1U);
  for (int i = 0; i < 3; ++i)
    Run(Exclusive(5, Packing::kSpread));
  for (int i = 0; i < 3; ++i)
    spread.insert(Run(Exclusive(1, Packing::kSpread)));
  EXPECT_EQ(spread.size(), 3U) << "fuller than half";
}

TEST_F(PackingTest, HolesStayForThoseThatNeedThem) {
  for (const auto& [node, count] : {std::pair(0, 6), std::pair(1, 5), std::pair(3, 4)})
    Fill(node, count);
  Fill(2, 2);
  for (const auto& [count, node] :
       {std::pair(2, "NUMA node #0"), std::pair(4, "NUMA node #3"), std::pair(3, "NUMA node #1")})
    EXPECT_EQ(Run(Exclusive(count)), node) << count;
  EXPECT_EQ(Run(Exclusive(5)), "NUMA node #2") << "spread, one of the others would be in it";
}

TEST_F(PackingTest, NoContainerLosesItsMemoryForATighterFit) {
  for (const int node : {0, 1, 2, 3})
    Fill(node, node == 1 ? 5 : 4);
  Demand shared = Shared(2000);
  shared.hints = {{"device", machine_.nodes()[1].cpus, {}}};
  EXPECT_EQ(Run(shared), "NUMA node #1");
  EXPECT_EQ(Run(Exclusive(3)), "NUMA node #0") << "node 1 has three, and a container that shares";
  EXPECT_EQ(moved_, 0U);
  EXPECT_EQ(Run(Exclusive(4)), "NUMA node #2");
  EXPECT_EQ(Run(Exclusive(4)), "NUMA node #3");
  EXPECT_EQ(Run(Exclusive(2)), "NUMA node #1") << "rather than to split it";
  EXPECT_EQ(moved_, 1U);
}

TEST_F(PackingTest, SharingContainersKeepAwayFromExclusiveOnes) {
  for (const int node : {0, 1, 3})
    Fill(node, 6);
  EXPECT_TRUE(IsPacked(book_, Shared(500).need));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(Run(Shared(500)), "NUMA node #2");
  std::set<std::string> nodes;
  for (int i = 0; i < 40; ++i)
    nodes.insert(Run(Shared(0)));
  EXPECT_EQ(nodes.size(), 4U) << "as many as there are CPUs for";
}

TEST_F(PackingTest, AFewContainersLoseTheirMemoryRatherThanALargeHole) {
  for (const auto& [node, count] : {std::pair(0, 6), std::pair(1, 7), std::pair(3, 7)})
    Fill(node, count);
  Demand shared = Shared(100);
  shared.hints = {{"device", machine_.nodes()[0].cpus, {}}};
  EXPECT_EQ(Run(shared), "NUMA node #0");
  EXPECT_EQ(Run(Exclusive(2)), "NUMA node #0") << "node 2 would have six of its eight left";
  EXPECT_EQ(moved_, 1U);
  EXPECT_EQ(Run(Exclusive(8)), "NUMA node #2");
}

TEST_F(PackingTest, ALittleMoreRoomForALimitIsNotWorthMemoryFarAway) {
  for (const int node : {0, 1, 2, 3})
    Fill(node, 5);
  Demand shared = Shared(1800);
  for (const int node : {0, 1, 2, 3}) {
    shared.hints = {{"device", machine_.nodes()[static_cast<size_t>(node)].cpus, {}}};
    Run(shared);
  }
  Demand burst = Shared(1000);
  burst.need.cpu_limit = 2000;
  EXPECT_THAT(Run(burst), HasSubstr("NUMA node")) << "1.2 CPUs of room and three CPUs";
  burst.need.cpu_limit = 4000;
  EXPECT_EQ(Run(burst), book_.tree().at(book_.tree().root()).name) << "no node shares four";
}

TEST_F(PackingTest, ARebalanceCountsRoomForALimitAsANewPlaceDoes) {
  for (const int node : {0, 2, 3})
    Fill(node, 7);
  Demand burst = Shared(1000);
  burst.need.cpu_limit = 2000;
  EXPECT_EQ(Run(burst), "NUMA node #1");
  Fill(1, 7);
  book_.Take(ContainerKey{2});
  Rebalancer rebalancer(book_, placer_);
  rebalancer.Add(ContainerKey{4}, burst);
  EXPECT_THAT(rebalancer.Run(), ElementsAre(ContainerKey{4})) << "one CPU, and it may use two";
  EXPECT_EQ(book_.tree().at(book_.Find(ContainerKey{4})->pool).name, "NUMA node #2");
  EXPECT_THAT(rebalancer.Run(), IsEmpty());
}

TEST_F(PackingTest, WhatIsSplitTakesFewPartsThatFitTightest) {
  const auto parts = [this](std::string_view free, int count) {
    return FewestParts(book_.tree(), test::Cpus(free), book_.tree().root(), count);
  };
  const auto node = [this](size_t id) { return machine_.nodes()[id].cpus; };
  EXPECT_THAT(parts("0-6,8-11,16-17,24", 8), ElementsAre(node(0), node(3)));
  EXPECT_THAT(parts("0-6,8-11,16-17,24", 9), ElementsAre(node(0), node(2)));
  EXPECT_THAT(parts("0-6,8-11,16-17,24", 6), ElementsAre(node(0))) << "no split";
  EXPECT_THAT(parts("0-6,8-12,16-20,24-27", 10), ElementsAre(node(1), node(2)))
      << "the largest one stays";
  EXPECT_THAT(parts("0-6,8-11,16-17,24", 14), ElementsAre(node(0), node(1), node(2), node(3)));
  EXPECT_THAT(parts("0-6", 8), IsEmpty());
  EXPECT_THAT(FewestParts(book_.tree(), test::Cpus("0-3"), 0, 2), IsEmpty()) << "has no parts";
}

TEST_F(PackingTest, ASplitContainerLeavesLargeHoles) {
  GrantBook book(machine_, machine_.online(), test::Cpus("0"), true);
  Grant others{.need = Exclusive(17).need, .pool = book.tree().root()};
  others.exclusive = test::Cpus("1-4,8-11,16-18,24-29");
  book.Give(static_cast<ContainerKey>(1), others);
  const StatusOr<Grant> grant = Placer(book).Place(Exclusive(7));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->exclusive, test::Cpus("19-23,30-31")) << "no part has seven, two have them";
  const StatusOr<Grant> spread = Placer(book).Place(Exclusive(7, Packing::kSpread));
  EXPECT_NE(spread->exclusive, grant->exclusive);
}

TEST(PackingOptionTest, IsRead) {
  for (const auto& [section, packing] :
       {std::pair("{}", Packing::kAuto), std::pair("{Packing: auto}", Packing::kAuto),
        std::pair("{Packing: spread}", Packing::kSpread),
        std::pair("{Packing: tight}", Packing::kTight)}) {
    const StatusOr<ConfigNode> config = ParseYaml(section, "test.yaml");
    const StatusOr<TopologyAwareOptions> options = ReadTopologyAwareOptions(&*config);
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->packing, packing) << section;
  }
  const StatusOr<ConfigNode> config = ParseYaml("{Packing: dense}", "test.yaml");
  EXPECT_THAT(std::string(Message(ReadTopologyAwareOptions(&*config).status())),
              HasSubstr("Packing"));
}

}  // namespace
}  // namespace resmgr
