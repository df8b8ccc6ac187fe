// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/pool_score.h"

#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

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
