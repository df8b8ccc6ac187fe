// SPDX-License-Identifier: Apache-2.0
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

}  // namespace
}  // namespace resmgr
