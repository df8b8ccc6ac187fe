// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/placer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/topology-aware/exclusive_finder.h"
#include "policies/topology-aware/pool_score.h"
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
      const bool fits = grant->candidates[0][PoolRule::kFits] > 0;
      ASSERT_EQ(fits, all[0][PoolRule::kFits] > 0);
      if (!fits) ASSERT_EQ(grant->candidates[0].pool, book.tree().root());
      for (size_t i = 0; fits && i < grant->candidates.size(); ++i) {
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

// Cores of one design that are faster on some CPUs.
Machine WithSpeeds(const Machine& machine, std::string_view fast, std::string_view fastest) {
  Machine::Parts parts = test::PartsOf(machine);
  for (Cpu& cpu : parts.cpus) {
    if (test::Cpus(fast).Contains(cpu.id)) cpu.speed = 1;
    if (test::Cpus(fastest).Contains(cpu.id)) cpu.speed = 2;
  }
  return test::MakeMachine(std::move(parts));
}

class ExclusiveFinderTest : public testing::Test {
 protected:
  static std::string Pick(const Machine& machine, const CpuSet& available, CpuPriority priority,
                          int count) {
    const GrantBook book(machine, available, CpuSet{available.Last()}, true);
    Demand demand;
    demand.need.cpu_class = CpuClass::kExclusive;
    demand.need.full = count;
    demand.need.priority = priority;
    const auto picked = ExclusiveFinder(book).Pick(demand, book.tree().root());
    return picked ? picked->ToString() : "none";
  }
};

TEST_F(ExclusiveFinderTest, FollowsClockRatesOfCoresOfOneDesign) {
  const Machine machine = WithSpeeds(test::MakeMachine({.cores = 8}), "2,4", "6");
  const CpuSet& all = machine.online();
  EXPECT_EQ(Pick(machine, all, CpuPriority::kHigh, 1), "6");
  EXPECT_EQ(Pick(machine, all, CpuPriority::kHigh, 2), "2,6");
  EXPECT_EQ(Pick(machine, all, CpuPriority::kHigh, 4), "0,2,4,6");
  EXPECT_EQ(Pick(machine, all, CpuPriority::kNormal, 4), "0-1,3,5") << "7 is reserved";
  EXPECT_EQ(Pick(machine, all, CpuPriority::kLow, 5), "0-3,5");
  EXPECT_EQ(Pick(machine, all, CpuPriority::kNone, 4), "0-3");
}

TEST_F(ExclusiveFinderTest, DesignsCountMoreThanClockRates) {
  const Machine machine = WithSpeeds(test::Hybrid(), "5", "2-3");
  EXPECT_EQ(Pick(machine, machine.online(), CpuPriority::kHigh, 5), "0-3,5");
  EXPECT_EQ(Pick(machine, machine.online(), CpuPriority::kLow, 3), "4-6");
  EXPECT_EQ(Pick(machine, machine.online(), CpuPriority::kNormal, 2), "0-1");
}

// The golden case of cri-resource-manager's allocator: the three existing fast CPUs, and the fourth
// one from their package.
TEST_F(ExclusiveFinderTest, HighPriorityTakesTheFastOnesAndOneBesideThem) {
  const Machine machine = WithSpeeds(
      test::MakeMachine({.packages = 2, .nodes = 2, .cores = 10, .threads = 2}), "2,15,17", "");
  EXPECT_EQ(Pick(machine, test::Cpus("2-3,10-26"), CpuPriority::kHigh, 4), "2-3,15,17");
}

TEST_F(ExclusiveFinderTest, BetterCpusScoreMore) {
  const Machine machine = WithSpeeds(test::MakeMachine({.cores = 8}), "1-3", "6-7");
  const GrantBook book(machine, machine.online(), CpuSet{0}, true);
  const ExclusiveFinder finder(book);
  Need need;
  need.full = 2;
  EXPECT_EQ(finder.PriorityScore(need, machine.online()), 0) << "no priority";
  need.priority = CpuPriority::kHigh;
  EXPECT_EQ(finder.PriorityScore(need, test::Cpus("1-3,6-7")), 4);
  EXPECT_EQ(finder.PriorityScore(need, test::Cpus("1-3,6")), 3);
  EXPECT_EQ(finder.PriorityScore(need, test::Cpus("0,1-3")), 2);
  EXPECT_EQ(finder.PriorityScore(need, test::Cpus("0,4-5")), 0);
  need.priority = CpuPriority::kLow;
  EXPECT_EQ(finder.PriorityScore(need, test::Cpus("0,4-5")), 4);
}

// A core with one thread, one with two, one with three and one with four. Siblings of the
// container's visible CPUs must not be another's, and a restart knows only the visible ones.
TEST_F(ExclusiveFinderTest, HiddenHyperthreadsAreOfWholeCoresThoughCoresDiffer) {
  Machine::Parts parts;
  for (int id = 0; id < 11; ++id) {
    constexpr std::array<int, 11> kCores = {0, 1, 2, 2, 3, 3, 3, 4, 4, 4, 4};
    parts.cpus.push_back({.id = id, .core = kCores[IndexOf(id)], .online = true});
    parts.allowed.Add(id);
  }
  const Machine machine = test::MakeMachine(std::move(parts));
  GrantBook book(machine, machine.online(), CpuSet{0}, true);
  const ExclusiveFinder finder(book);
  for (const auto& [taken, asked, picked] :
       {std::tuple("", 1, "2-6"), std::tuple("", 5, "2-10"), std::tuple("7-10", 2, "2-6"),
        std::tuple("1,7-10", 2, "2-6"), std::tuple("1-3,7-10", 2, "")}) {
    book.Clear();
    book.Give(ContainerKey{1}, {.exclusive = test::Cpus(taken)});
    Demand demand;
    demand.need = {.cpu_class = CpuClass::kExclusive, .full = asked, .hide_hyperthreads = true};
    const std::optional<CpuSet> cpus = finder.Pick(demand, book.tree().root());
    EXPECT_EQ(cpus.value_or(CpuSet()).ToString(), picked) << asked << " beside " << taken;
    EXPECT_EQ(finder.Has(demand, book.tree().root()), cpus.has_value());
    if (cpus) EXPECT_TRUE(finder.Meets(demand.need, *cpus));
  }
  const Need need = {.cpu_class = CpuClass::kExclusive, .full = 1, .hide_hyperthreads = true};
  // Other containers leave four CPUs.
  book.Clear();
  book.Give(ContainerKey{1}, {.need = {.fraction = 6000}, .pool = book.tree().root()});
  EXPECT_EQ(finder.Pick({.need = need}, book.tree().root()), test::Cpus("7-10"));
  EXPECT_FALSE(finder.Meets(need, test::Cpus("2-3"))) << "too few";
  EXPECT_FALSE(finder.Meets(need, test::Cpus("2-6,7"))) << "not whole";
  EXPECT_FALSE(finder.Meets(need, test::Cpus("1-10"))) << "too many";
}

// Scores with many equal numbers; only the last one differs, as between pools.
std::vector<PoolScore> SomeScores(uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  std::vector<PoolScore> scores;
  for (int pool = 0; pool < count; ++pool) {
    PoolScore score{.pool = pool};
    for (int64_t& key : score.keys)
      key = std::uniform_int_distribution<int64_t>(-1, 1)(random);
    score[PoolRule::kFirst] = -pool;
    scores.push_back(score);
  }
  return scores;
}

TEST(PoolScoreTest, ComparingIsAStrictTotalOrder) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<PoolScore> scores = SomeScores(seed, 40);
    for (const PoolScore& a : scores) {
      EXPECT_TRUE(Compare(a, a).order == 0);
      for (const PoolScore& b : scores) {
        if (a.pool == b.pool) continue;
        const bool less = Compare(a, b).order < 0;
        EXPECT_NE(less, Compare(b, a).order < 0) << "one of two different pools is better";
        if (!less) continue;
        for (const PoolScore& c : scores) {
          if (Compare(b, c).order >= 0) continue;
          EXPECT_TRUE(Compare(a, c).order < 0);
        }
      }
    }
  }
}

TEST(PoolScoreTest, NamesTheFirstRuleThatDiffers) {
  PoolScore a{.pool = 0};
  PoolScore b{.pool = 1};
  a[PoolRule::kFewerNodes] = -1;
  b[PoolRule::kFewerNodes] = -2;
  b[PoolRule::kDeeper] = 3;
  EXPECT_TRUE(Compare(a, b).order > 0);
  EXPECT_EQ(Compare(a, b).rule, PoolRule::kFewerNodes);
}

TEST(PoolScoreTest, EveryRuleHasWords) {
  for (size_t rule = 0; rule < kPoolRules; ++rule)
    EXPECT_FALSE(ToString(static_cast<PoolRule>(rule)).empty()) << rule;
}

class PoolScoreTreeTest : public testing::Test {
 protected:
  const Machine machine_ = test::MakeMachine({.packages = 2, .nodes = 2, .cores = 2});
  const PoolTree tree_{machine_, machine_.online(), {}};
  int64_t Affinity(std::string_view pool, const std::vector<std::pair<const char*, int>>& others) {
    std::vector<int64_t> weights(tree_.size());
    for (const auto& [name, weight] : others)
      weights[static_cast<size_t>(tree_.Find(name))] = weight;
    return AffinityScores(tree_, weights)[static_cast<size_t>(tree_.Find(pool))];
  }
  int64_t Hint(std::string_view pool, const LocalityHint& hint) {
    return HintScore(tree_, tree_.Find(pool), hint);
  }
};

TEST_F(PoolScoreTreeTest, AffinityFallsWithDistance) {
  const std::vector<std::pair<const char*, int>> one = {{"NUMA node #1", 1}};
  EXPECT_EQ(Affinity("NUMA node #1", one), 16);
  EXPECT_EQ(Affinity("socket #0", one), 12);
  EXPECT_EQ(Affinity("root", one), 9);
  EXPECT_EQ(Affinity("NUMA node #0", one), 0);
}

TEST_F(PoolScoreTreeTest, AffinityCountsWhatIsAbove) {
  const std::vector<std::pair<const char*, int>> above = {{"root", 1}, {"socket #0", -2}};
  EXPECT_EQ(Affinity("root", above), 16 - 24);
  EXPECT_EQ(Affinity("socket #0", above), 12 - 32);
  EXPECT_EQ(Affinity("NUMA node #0", above), 9 - 24);
  EXPECT_EQ(Affinity("NUMA node #2", above), 9);
}

TEST_F(PoolScoreTreeTest, AffinityToBothNodesOfASocketIsBestAtTheSocket) {
  const std::vector<std::pair<const char*, int>> both = {{"NUMA node #0", 1}, {"NUMA node #1", 1}};
  EXPECT_GT(Affinity("socket #0", both), Affinity("NUMA node #1", both));
  EXPECT_GT(Affinity("socket #0", both), Affinity("root", both));
  const std::vector<std::pair<const char*, int>> apart = {{"NUMA node #0", 1}, {"NUMA node #3", 1}};
  EXPECT_GT(Affinity("root", apart), Affinity("NUMA node #0", apart));
  EXPECT_GT(Affinity("root", apart), Affinity("socket #0", apart));
}

TEST_F(PoolScoreTreeTest, HintsForNodesFallByATenthPerLevel) {
  const LocalityHint hint{"device /dev/x", {}, NodeSet{2}};
  EXPECT_EQ(Hint("NUMA node #2", hint), 1'000'000);
  EXPECT_EQ(Hint("socket #1", hint), 900'000);
  EXPECT_EQ(Hint("root", hint), 810'000);
  EXPECT_EQ(Hint("NUMA node #3", hint), 0);
}

TEST_F(PoolScoreTreeTest, HintsForCpusCountTheirShare) {
  const LocalityHint hint{"device /dev/x", test::Cpus("0-3"), {}};
  EXPECT_EQ(Hint("NUMA node #0", hint), 500'000);
  EXPECT_EQ(Hint("socket #0", hint), 1'000'000);
  EXPECT_EQ(Hint("NUMA node #2", hint), 0);
}

}  // namespace
}  // namespace resmgr
