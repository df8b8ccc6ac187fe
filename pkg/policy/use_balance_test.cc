// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/use_balance.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/policy/testing/test_snapshot.h"
#include "test/support/machines/machines.h"

namespace resmgr::policy {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// Pools with fixed CPUs; each container is in one, and may move to all others.
class PoolsPolicy final : public Policy {
 public:
  explicit PoolsPolicy(std::vector<SharedPool> pools) : pools_(std::move(pools)) {}

  void Put(ContainerKey key, size_t pool) { places_[key] = pool; }
  void Fix(ContainerKey key) { fixed_ = key; }
  void RefuseAll() { refuses_ = true; }

  std::string_view name() const override { return "pools"; }
  std::unique_ptr<Policy> Clone() const override { return std::make_unique<PoolsPolicy>(*this); }
  StatusOr<Plan> Reconcile(const Snapshot&) override { return Plan{}; }
  StatusOr<Plan> Allocate(const Snapshot&, const Pod&, const Container&,
                          const Container*) override {
    return Plan{};
  }
  StatusOr<Plan> Update(const Snapshot&, const Pod&, const Container&) override { return Plan{}; }
  StatusOr<Plan> Release(const Snapshot&, ContainerKey) override { return Plan{}; }
  std::vector<Zone> Zones(const Snapshot&) const override { return {}; }

  SharedPools Shared(const Snapshot&) const override {
    SharedPools shared{.pools = pools_};
    for (const auto& [key, pool] : places_)
      shared.containers.push_back({key, pool});
    return shared;
  }
  std::vector<std::string> TargetsOf(const Snapshot&, ContainerKey key) const override {
    std::vector<std::string> names;
    for (size_t pool = 0; key != fixed_ && pool < pools_.size(); ++pool)
      if (pool != places_.at(key)) names.push_back(pools_[pool].name);
    return names;
  }
  StatusOr<Plan> MoveShared(const Snapshot&, std::span<const PoolMove> moves) override {
    if (refuses_) return FailedPrecondition("no");
    for (const PoolMove& move : moves)
      for (size_t pool = 0; pool < pools_.size(); ++pool)
        if (pools_[pool].name == move.pool) places_[move.key] = pool;
    return Plan{};
  }

 private:
  std::vector<SharedPool> pools_;
  std::map<ContainerKey, size_t> places_;
  ContainerKey fixed_{};
  bool refuses_ = false;
};

class UseBalanceTest : public ::testing::Test {
 protected:
  static constexpr size_t kA = 0;
  static constexpr size_t kB = 1;
  static constexpr size_t kAll = 2;

  ContainerKey Add(std::string_view name, size_t pool, double cpus, std::optional<double> waits) {
    const ContainerKey key = snapshot_.Add(name, QosClass::kBurstable, 500).key;
    policy_.Put(key, pool);
    use_.containers[key] = {.cpus = cpus, .pressure = waits};
    return key;
  }
  UsePlan PlanOf() const {
    return PlanByUse(policy_, snapshot_, use_, limits_,
                     [this](ContainerKey key) { return key == stays_; });
  }

  PoolsPolicy policy_{
      {{"a", test::Cpus("0-3")}, {"b", test::Cpus("4-7")}, {"all", test::Cpus("0-7")}}};
  test::TestSnapshot snapshot_;
  MeasuredUse use_{.over = std::chrono::seconds(60)};
  UseLimits limits_;
  ContainerKey stays_{};
};

TEST_F(UseBalanceTest, WhatAContainerWantsIsBounded) {
  EXPECT_DOUBLE_EQ(WantedCpus({.cpus = 1.5}, 0, 0), 1.5);
  EXPECT_DOUBLE_EQ(WantedCpus({.cpus = 0.5, .pressure = 50}, 0, 0), 1);
  EXPECT_DOUBLE_EQ(WantedCpus({.cpus = 0.5, .pressure = 99}, 0, 0), 1);
  EXPECT_DOUBLE_EQ(WantedCpus({.cpus = 0.5, .pressure = 50}, 0, 0.75), 0.75);
  EXPECT_DOUBLE_EQ(WantedCpus({.cpus = 2.5, .pressure = 20}, 2, 0), 0.625);
  EXPECT_DOUBLE_EQ(WantedCpus({.cpus = 1.2}, 2, 0), 0);
  // A burst of the period before its limit was set.
  EXPECT_DOUBLE_EQ(WantedCpus({.cpus = 2}, 0, 1), 2);
}

TEST_F(UseBalanceTest, MovesFromACrowdedPoolToOneWithRoom) {
  Add("one", kA, 2, 33.3333);
  const ContainerKey two = Add("two", kA, 2, 33.3333);
  Add("idle", kB, 0.1, 0);
  const UsePlan plan = PlanOf();
  EXPECT_THAT(plan.lacking, DoubleNear(2, 0.01));
  EXPECT_THAT(plan.lacking_after, DoubleNear(0, 0.01));
  ASSERT_THAT(plan.moves, SizeIs(1));
  EXPECT_EQ(plan.moves[0].to, "b");
  EXPECT_EQ(plan.moves[0].from, "a");
  EXPECT_THAT(plan.moves[0].gain, DoubleNear(2, 0.01));
  EXPECT_THAT(plan.moves[0].relief, ElementsAre(Pair("a", DoubleNear(2, 0.01))));
  EXPECT_NE(plan.moves[0].key, ContainerKey{});
  EXPECT_THAT(plan.moves[0].from_load.wanted, DoubleNear(6, 0.01));
  EXPECT_EQ(plan.measured, 3U);
  stays_ = plan.moves[0].key;
  const UsePlan other = PlanOf();
  ASSERT_THAT(other.moves, SizeIs(1));
  EXPECT_EQ(other.moves[0].key, stays_ == two ? ContainerKey{1} : two);
}

TEST_F(UseBalanceTest, NothingMovesWithoutWant) {
  Add("one", kA, 1.9, 0);
  Add("two", kA, 2, std::nullopt);
  EXPECT_THAT(PlanOf().moves, IsEmpty());
  EXPECT_EQ(PlanOf().lacking, 0);
}

TEST_F(UseBalanceTest, NothingMovesWhereAllIsFull) {
  for (const size_t pool : {kA, kB}) {
    Add(pool == kA ? "one" : "three", pool, 2, 33.3333);
    Add(pool == kA ? "two" : "four", pool, 2, 33.3333);
  }
  const UsePlan plan = PlanOf();
  EXPECT_THAT(plan.moves, IsEmpty());
  EXPECT_THAT(plan.lacking, DoubleNear(4, 0.01));
}

TEST_F(UseBalanceTest, TheSmallestMoveThatGainsAsMuchIsTaken) {
  Add("large", kA, 3.9, 0);
  const ContainerKey small = Add("small", kA, 0.6, 0);
  EXPECT_THAT(PlanOf().moves, ElementsAre(Field(&UseMove::key, small)));
}

TEST_F(UseBalanceTest, ANearerPoolIsTakenUnlessAnotherOneGainsMuchMore) {
  Add("one", kA, 1.5, 50);
  Add("two", kA, 2.1, 50);
  // With "two" in "b" 0.2 CPUs would be lacking, in "all" none.
  limits_.least_gain = 0.3;
  ASSERT_THAT(PlanOf().moves, SizeIs(1));
  EXPECT_EQ(PlanOf().moves[0].to, "b");
  limits_.least_gain = 0.1;
  EXPECT_EQ(PlanOf().moves[0].to, "all");
}

TEST_F(UseBalanceTest, AGainThatIsSmallAgainstWhatMovesIsNone) {
  Add("large", kA, 4, 5);
  EXPECT_THAT(PlanOf().lacking, DoubleNear(0.21, 0.01));
  EXPECT_THAT(PlanOf().moves, IsEmpty());
}

TEST_F(UseBalanceTest, TheBudgetHoldsAndEachContainerMovesOnce) {
  for (int i = 0; i < 8; ++i)
    Add("c" + std::to_string(i), kA, 0.5, 50);
  limits_.most_moves = 2;
  const UsePlan plan = PlanOf();
  ASSERT_THAT(plan.moves, SizeIs(2));
  EXPECT_NE(plan.moves[0].key, plan.moves[1].key);
  EXPECT_THAT(plan.lacking - plan.lacking_after, DoubleNear(2, 0.01));
  limits_.most_moves = 100;
  EXPECT_THAT(PlanOf().moves, SizeIs(4));
}

TEST_F(UseBalanceTest, APoolAroundOthersGetsWhatTheyLeave) {
  Add("one", kA, 4, 0);
  const ContainerKey around = Add("around", kAll, 4, 20);
  const PoolLoads loads = LoadsOf(policy_, snapshot_, use_);
  EXPECT_THAT(loads.at("all").lacking, DoubleNear(1, 0.01));
  EXPECT_EQ(loads.at("a").lacking, 0);
  EXPECT_THAT(Lacking(loads), DoubleNear(1, 0.01));
  // No move helps: all CPUs are used, except those that "around" cannot have beside "one".
  policy_.Fix(around);
  EXPECT_THAT(PlanOf().moves, IsEmpty());
}

// Many pools, as balloons may be; the loop waits for the plan.
TEST_F(UseBalanceTest, ManyPoolsAreSoonPlanned) {
  constexpr size_t kPools = 200;
  std::vector<SharedPool> pools;
  for (size_t i = 0; i < kPools; ++i) {
    const int first = static_cast<int>(2 * i);
    pools.push_back({"web[" + std::to_string(i) + "]", {first, first + 1}});
  }
  policy_ = PoolsPolicy(std::move(pools));
  for (size_t i = 0; i < 500; ++i)
    Add("c" + std::to_string(i), i % (kPools / 2), 0.3 + 0.001 * static_cast<double>(i), 50);
  limits_.most_moves = 100;
  const UsePlan plan = PlanOf();
  EXPECT_THAT(plan.moves, SizeIs(100));
  double gain = 0;
  for (const UseMove& move : plan.moves) {
    EXPECT_GE(move.gain, limits_.least_gain);
    gain += move.gain;
  }
  EXPECT_THAT(gain, DoubleNear(plan.lacking - plan.lacking_after, 1e-6));
}

TEST_F(UseBalanceTest, RefusedMovesEndThePlan) {
  for (int i = 0; i < 40; ++i)
    Add("c" + std::to_string(i), kA, 0.5, 50);
  policy_.RefuseAll();
  EXPECT_THAT(PlanOf().moves, IsEmpty());
}

TEST_F(UseBalanceTest, APlanChangesNothingAndIsTheSameAgain) {
  Add("one", kA, 2, 33.3333);
  Add("two", kA, 2, 33.3333);
  const UsePlan first = PlanOf();
  const UsePlan second = PlanOf();
  ASSERT_EQ(first.moves.size(), second.moves.size());
  EXPECT_EQ(first.moves[0].key, second.moves[0].key);
  EXPECT_EQ(LoadsOf(policy_, snapshot_, use_).at("b").wanted, 0);
}

}  // namespace
}  // namespace resmgr::policy
