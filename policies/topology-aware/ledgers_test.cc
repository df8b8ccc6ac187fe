// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "policies/topology-aware/cpu_ledger.h"
#include "policies/topology-aware/memory_ledger.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

// Four nodes of four CPUs; CPU 0 is reserved.
class CpuLedgerTest : public testing::Test {
 protected:
  int Pool(std::string_view name) const { return tree_.Find(name); }

  const Machine machine_ = test::MakeMachine({.packages = 2, .nodes = 2, .cores = 4});
  const PoolTree tree_{machine_, machine_.online(), test::Cpus("0")};
  CpuLedger ledger_{machine_, tree_, test::Cpus("0")};
};

TEST_F(CpuLedgerTest, AGrantCountsInAllPoolsThatHaveItsCpus) {
  ledger_.Give({.pool = Pool("socket #1"), .exclusive = test::Cpus("8-9,12")});
  EXPECT_EQ(ledger_.FreeCpus(Pool("NUMA node #2")), 2);
  EXPECT_EQ(ledger_.FreeCpus(Pool("NUMA node #3")), 3);
  EXPECT_EQ(ledger_.FreeCpus(tree_.root()), 12);
  EXPECT_EQ(ledger_.Sliceable(Pool("NUMA node #2"), 0), 2);
  EXPECT_EQ(ledger_.Members(Pool("socket #1")), 1);
}

TEST_F(CpuLedgerTest, SharedRequestsCountUpwards) {
  ledger_.Give({.pool = Pool("NUMA node #1"), .shared = 2500, .shares = true});
  EXPECT_EQ(ledger_.Room(Pool("NUMA node #1")), 1500);
  EXPECT_EQ(ledger_.Room(Pool("socket #0")), 4500);
  EXPECT_EQ(ledger_.Sliceable(Pool("NUMA node #1"), 0), 1);
  EXPECT_EQ(ledger_.Sliceable(Pool("NUMA node #1"), 600), 0);
}

TEST_F(CpuLedgerTest, RoomBelowIsNeverMoreThanAbove) {
  ledger_.Give({.pool = tree_.root(), .shared = 14000, .shares = true});
  EXPECT_EQ(ledger_.Room(Pool("NUMA node #2")), 1000);
  EXPECT_EQ(ledger_.Sliceable(Pool("NUMA node #2"), 0), 1);
}

TEST_F(CpuLedgerTest, ASliceAboveLeavesSharersBelowTheirCpus) {
  ledger_.Give({.pool = Pool("NUMA node #2"), .shared = 1500, .shares = true});
  ledger_.Give({.pool = Pool("NUMA node #3"), .shares = true});
  EXPECT_EQ(ledger_.Sliceable(Pool("socket #1"), 0), 5);
  const CpuSet spare = ledger_.Spare(Pool("socket #1"), 0, {});
  EXPECT_EQ(spare.CountCommon(test::Cpus("8-11")), 2);
  EXPECT_EQ(spare.CountCommon(test::Cpus("12-15")), 3);
}

TEST_F(CpuLedgerTest, OnlyTheWholeMachineKeepsWhatSharersAskForWhenTheyMayMove) {
  ledger_.Give({.pool = Pool("NUMA node #2"), .shared = 1500, .shares = true});
  ledger_.Give({.pool = Pool("NUMA node #3"), .shares = true});
  EXPECT_EQ(ledger_.Grantable(Pool("NUMA node #2"), 0), 4);
  EXPECT_EQ(ledger_.Grantable(Pool("socket #1"), 0), 8);
  EXPECT_EQ(ledger_.Grantable(tree_.root(), 0), 13);
  EXPECT_EQ(ledger_.Grantable(tree_.root(), 600), 12);
  EXPECT_TRUE(ledger_.CanSpare(test::Cpus("8-15")));
  EXPECT_FALSE(ledger_.CanSpare(test::Cpus("1-14")));
  ledger_.Give({.pool = tree_.root(), .exclusive = test::Cpus("8-11")});
  EXPECT_TRUE(ledger_.IsOverfull(Pool("NUMA node #2")));
  EXPECT_EQ(ledger_.Excess(Pool("NUMA node #2")), 1500);
  EXPECT_FALSE(ledger_.IsOverfull(Pool("NUMA node #3")));
}

TEST_F(CpuLedgerTest, ReservedCpusAreLentWhenAllOthersAreExclusive) {
  ledger_.Give({.pool = tree_.root(), .shares = true});
  EXPECT_EQ(ledger_.Grantable(tree_.root(), 0), 15);
  ledger_.Give({.pool = tree_.root(), .exclusive = test::Cpus("1-15")});
  EXPECT_EQ(ledger_.SharedSet(tree_.root()).ToString(), "0");
  EXPECT_TRUE(ledger_.SharedSet(Pool("NUMA node #0")).empty());
}

TEST_F(CpuLedgerTest, WithoutReservedCpusTheLastOneIsNotGranted) {
  const PoolTree tree(machine_, machine_.online(), {});
  const CpuLedger ledger(machine_, tree, {});
  EXPECT_EQ(ledger.Grantable(tree.root(), 0), 15);
  EXPECT_EQ(ledger.Sliceable(tree.root(), 0), 15);
  EXPECT_EQ(ledger_.Sliceable(tree_.root(), 0), 15);
  EXPECT_EQ(ledger_.Sliceable(Pool("NUMA node #0"), 0), 3);
  EXPECT_EQ(ledger_.Sliceable(Pool("NUMA node #1"), 0), 4);
}

TEST_F(CpuLedgerTest, WhatIsTakenBackLeavesNoTrace) {
  const CpuLedger::Share share = {
      .pool = Pool("socket #0"), .exclusive = test::Cpus("1-2,5"), .shared = 700, .shares = true};
  ledger_.Give(share);
  ledger_.Take(share);
  EXPECT_TRUE(ledger_.exclusive().empty());
  for (const auto& pool : tree_.pools()) {
    EXPECT_EQ(ledger_.Room(pool.id), 1000 * pool.sharable.size()) << pool.name;
    EXPECT_EQ(ledger_.Members(pool.id), 0) << pool.name;
  }
}

// Sharers go up and down between pools of which one lies in the other.
TEST_F(CpuLedgerTest, AfterMovesItIsAsIfEachHadBeenThereFromTheStart) {
  std::mt19937_64 random(1);
  std::vector<CpuLedger::Share> shares;
  for (const auto& pool : tree_.pools()) {
    shares.push_back({.pool = pool.id, .shared = 300 * (pool.id + 1), .shares = true});
    ledger_.Give(shares.back());
  }
  ledger_.Give({.pool = Pool("socket #1"), .exclusive = test::Cpus("9-10"), .shared = 0});
  for (int step = 0; step < 500; ++step) {
    CpuLedger::Share& share = shares[random() % shares.size()];
    const auto to = static_cast<int>(random() % tree_.size());
    if (!tree_.IsAncestorOrSelf(to, share.pool) && !tree_.IsAncestorOrSelf(share.pool, to))
      continue;
    ledger_.Move(share, to);
    share.pool = to;
    CpuLedger fresh(machine_, tree_, test::Cpus("0"));
    fresh.Give({.pool = Pool("socket #1"), .exclusive = test::Cpus("9-10"), .shared = 0});
    for (const CpuLedger::Share& one : shares)
      fresh.Give(one);
    for (const auto& pool : tree_.pools()) {
      ASSERT_EQ(ledger_.Room(pool.id), fresh.Room(pool.id)) << pool.name;
      ASSERT_EQ(ledger_.Excess(pool.id), fresh.Excess(pool.id)) << pool.name;
      ASSERT_EQ(ledger_.Sliceable(pool.id, 100), fresh.Sliceable(pool.id, 100)) << pool.name;
      ASSERT_EQ(ledger_.Members(pool.id), fresh.Members(pool.id)) << pool.name;
      ASSERT_EQ(ledger_.OwnShared(pool.id), fresh.OwnShared(pool.id)) << pool.name;
    }
  }
}

// Compares the rooms with their definitions, computed from all grants.
void ExpectRooms(const PoolTree& tree, const CpuLedger& ledger,
                 const std::vector<CpuLedger::Share>& shares) {
  std::vector<int64_t> rooms(tree.size());
  for (int id = tree.root(); id >= 0; --id) {
    const Pool& pool = tree.at(id);
    CpuSet free = pool.sharable;
    int64_t need = 0;
    for (const CpuLedger::Share& share : shares) {
      free -= share.exclusive;
      if (tree.IsAncestorOrSelf(id, share.pool)) need += share.shared;
    }
    int64_t& room = rooms[IndexOf(id)];
    room = int64_t{1000} * free.size() - need;
    if (pool.parent >= 0) room = std::min(room, rooms[IndexOf(pool.parent)]);
    ASSERT_EQ(ledger.Free(id), free) << pool.name;
    ASSERT_EQ(ledger.Room(id), room) << pool.name;
  }
}

// Only the pools that a change touches are counted anew.
TEST_F(CpuLedgerTest, AfterAnyChangesItIsAsIfTheRestHadComeInAnotherOrder) {
  std::mt19937_64 random(2);
  std::vector<CpuLedger::Share> shares;
  for (int step = 0; step < 1000; ++step) {
    if (!shares.empty() && (random() % 2 == 0 || shares.size() > 12)) {
      const size_t index = random() % shares.size();
      ledger_.Take(shares[index]);
      shares.erase(shares.begin() + static_cast<std::ptrdiff_t>(index));
    } else {
      CpuLedger::Share share = {.pool = static_cast<int>(random() % tree_.size())};
      for (const int cpu : ledger_.Free(share.pool)) {
        if (step % 3 == 0 && random() % 3 == 0) share.exclusive.Add(cpu);
      }
      share.shared = static_cast<int64_t>(random() % 3) * 700;
      share.shares = share.exclusive.empty() || share.shared > 0;
      ledger_.Give(share);
      shares.push_back(share);
    }
    ExpectRooms(tree_, ledger_, shares);
    CpuLedger fresh(machine_, tree_, test::Cpus("0"));
    for (auto share = shares.rbegin(); share != shares.rend(); ++share)
      fresh.Give(*share);
    for (const auto& pool : tree_.pools()) {
      ASSERT_EQ(ledger_.Excess(pool.id), fresh.Excess(pool.id)) << pool.name;
      ASSERT_EQ(ledger_.Sliceable(pool.id, 100), fresh.Sliceable(pool.id, 100)) << pool.name;
      ASSERT_EQ(ledger_.CanShare(pool.id), !ledger_.SharedSet(pool.id).empty()) << pool.name;
    }
  }
}

// Two packages of two nodes with 16 GiB each.
class MemoryLedgerTest : public testing::Test {
 protected:
  static constexpr int64_t kGiB = int64_t{1} << 30;
  int Pool(std::string_view name) const { return tree_.Find(name); }
  std::string Find(std::string_view pool, int64_t gibibytes) {
    const auto zone = ledger_.Find(Pool(pool), kAllMemoryTypes, Bytes{gibibytes * kGiB});
    return zone ? ledger_.Nodes(*zone).ToString() : "none";
  }
  MemoryZone ZoneOf(std::string_view pool) { return {Pool(pool), kDramBit}; }

  const Machine machine_ = test::MakeMachine({.packages = 2, .nodes = 2, .cores = 4});
  const PoolTree tree_{machine_, machine_.online(), {}};
  MemoryLedger ledger_{tree_};
};

TEST_F(MemoryLedgerTest, GrowsToWhereItFits) {
  EXPECT_EQ(Find("NUMA node #1", 16), "1");
  EXPECT_EQ(Find("NUMA node #1", 17), "0-1");
  EXPECT_EQ(Find("NUMA node #1", 33), "0-3");
  EXPECT_EQ(Find("NUMA node #1", 65), "none");
}

TEST_F(MemoryLedgerTest, WideGrantsCountWhereverTheyMayLie) {
  ledger_.Give(ZoneOf("root"), Bytes{10 * kGiB});
  EXPECT_EQ(Find("NUMA node #1", 6), "1");
  EXPECT_EQ(Find("NUMA node #1", 7), "0-1");
  ledger_.Take(ZoneOf("root"), Bytes{10 * kGiB});
  EXPECT_EQ(Find("NUMA node #1", 7), "1");
}

TEST_F(MemoryLedgerTest, FindsZonesThatBecameUnsafe) {
  ledger_.Give(ZoneOf("NUMA node #1"), Bytes{10 * kGiB});
  EXPECT_TRUE(ledger_.Overfull().empty());
  ledger_.Give(ZoneOf("socket #0"), Bytes{10 * kGiB});
  ASSERT_EQ(ledger_.Overfull().size(), 1u);
  EXPECT_EQ(ledger_.Overfull()[0], ZoneOf("NUMA node #1"));
  EXPECT_EQ(ledger_.Within(Pool("socket #0")).value, 20 * kGiB);
}

TEST_F(MemoryLedgerTest, KnowsWhatMemoryThereIs) {
  EXPECT_FALSE(ledger_.ZoneAt(Pool("root"), kPmemBit).has_value());
  EXPECT_FALSE(ledger_.Larger(ZoneOf("root"), kAllMemoryTypes).has_value());
}

// With all types of memory, against the rule: memory that may lie on one of a zone's nodes counts
// in the zone.
TEST(MemoryLedgerTypesTest, WhatMayLieOnNodesOfAZoneIsUsedThere) {
  const Machine regular = test::MakeMachine({.packages = 2, .nodes = 3, .l3s = 2, .cores = 2});
  Machine::Parts parts = test::PartsOf(regular);
  constexpr Bytes kPage{2 << 20};
  constexpr int64_t kPages = 50;
  for (NumaNode& node : parts.nodes) {
    node.huge_pages = {{kPage, kPages}};
    node.type = node.id % 3 == 0   ? MemoryType::kDram
                : node.id % 3 == 1 ? MemoryType::kPmem
                                   : MemoryType::kHbm;
  }
  const Machine machine = test::MakeMachine(std::move(parts));
  const PoolTree tree(machine, machine.online(), {});
  MemoryLedger ledger(tree);
  std::mt19937_64 random(1);
  struct Given {
    MemoryZone zone;
    Bytes size;
    HugeMemories huge;
  };
  std::vector<Given> grants;
  for (int step = 0; step < 1000; ++step) {
    if (!grants.empty() && random() % 3 == 0) {
      ledger.Take(grants.back().zone, grants.back().size, grants.back().huge);
      grants.pop_back();
    } else if (const auto zone =
                   ledger.ZoneAt(static_cast<int>(random() % tree.size()),
                                 1 + static_cast<MemoryTypes>(random() % kAllMemoryTypes))) {
      grants.push_back({*zone, Bytes{static_cast<int64_t>(random() % 100)}, {}});
      if (step % 2 == 0) grants.back().huge = {{kPage, Bytes{step % 7 * kPage.value}}};
      ledger.Give(*zone, grants.back().size, grants.back().huge);
    }
    const Pool& pool = tree.at(static_cast<int>(random() % tree.size()));
    const MemoryZone asked{pool.id, pool.memory_types & static_cast<MemoryTypes>(random())};
    if (asked.types == 0) continue;
    int64_t used = 0;
    int64_t huge_left = ledger.Nodes(asked).size() * kPages * kPage.value;
    for (const auto& [zone, size, huge] : grants) {
      if (!ledger.Nodes(zone).Intersects(ledger.Nodes(asked))) continue;
      used += size.value;
      if (!huge.empty()) huge_left -= huge[0].amount.value;
    }
    ASSERT_EQ(ledger.Used(asked).value, used) << pool.name;
    ASSERT_EQ(ledger.FreeHuge(asked, kPage).value, huge_left) << pool.name;
    ASSERT_EQ(ledger.FreeHuge(asked, Bytes{1 << 16}).value, 0) << "there are no such pages";
  }
}

}  // namespace
}  // namespace resmgr
