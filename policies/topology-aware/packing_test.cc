// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/packing.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "policies/topology-aware/options.h"
#include "policies/topology-aware/placer.h"
#include "policies/topology-aware/rebalancer.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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
