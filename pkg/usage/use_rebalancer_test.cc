// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/use_rebalancer.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/clock.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using std::chrono::seconds;
using State = UseRound::State;
using test::Must;
using testing::DoubleNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::unique_ptr<Policy> TopologyAware(const Machine& machine) {
  return TopologyAwarePolicy::Create(
             {.machine = machine, .available = machine.allowed(), .reserved = test::Cpus("0")})
      .value();
}

// Three shared pools: one around another one, and one beside them. "small" is in the inner one, all
// others are in the one around it.
class NestedPolicy final : public test::FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;

  bool takes_back = true;
  int followed = 0;

  std::unique_ptr<Policy> Clone() const override { return std::make_unique<NestedPolicy>(*this); }
  policy::SharedPools Shared(const Snapshot& snapshot) const override {
    policy::SharedPools shared{{{"inner", test::Cpus("0-1")},
                                {"around", test::Cpus("0-3")},
                                {"beside", test::Cpus("4-7")}},
                               {}};
    snapshot.ForEachContainer([&](const Pod&, const Container& container) {
      const bool small = container.name == "small";
      shared.containers.push_back(
          {container.key, moved_.contains(container.key) ? size_t{2} : size_t{small ? 0U : 1U}});
    });
    return shared;
  }
  std::vector<std::string> TargetsOf(const Snapshot&, ContainerKey key) const override {
    return moved_.contains(key) ? std::vector<std::string>() : std::vector<std::string>{"beside"};
  }
  StatusOr<Plan> MoveShared(const Snapshot& snapshot,
                            std::span<const policy::PoolMove> moves) override {
    Plan plan;
    for (const auto& [key, pool] : moves) {
      if (pool != "beside" && !takes_back) return FailedPrecondition("no room");
      if (pool == "beside") {
        moved_.insert(key);
      } else {
        moved_.erase(key);
      }
      Placement placement = snapshot.FindContainer(key)->placement;
      placement.pool = pool;
      plan.changes.push_back({key, std::move(placement)});
    }
    return plan;
  }
  bool FollowsUse() const override { return true; }
  StatusOr<Plan> FollowUse(const Snapshot&, const policy::MeasuredUse& use) override {
    followed += use.empty() ? 0 : 1;
    return Plan{};
  }

 private:
  std::set<ContainerKey> moved_;
};

// Two packages of CPUs 0-3 (0 is reserved) and 4-7; four containers, of which two are crowded in
// the second one.
class UseRebalancerTest : public testing::Test {
 protected:
  UseRebalancerTest() {
    std::map<std::string, std::vector<ContainerId>> pools;
    for (const std::string_view name : {"a", "b", "c", "d"}) {
      const ContainerId id = RunWithoutLimit(node_, name);
      pools[PoolOf(id)].push_back(id);
      all_.push_back(id);
    }
    for (const auto& [name, ids] : pools)
      if (ids.size() > crowded_.size() && name.ends_with("#1")) crowded_ = ids;
    Use(crowded_, 1.9, 40);
  }

  static ContainerId RunWithoutLimit(test::TestNode& node, std::string_view name) {
    CreateRequest request =
        test::TestNode::Request(node.AddPod(name, QosClass::kBurstable), name, 300);
    request.resources.cpu_quota.reset();
    ContainerId id = node.Create(request).value();
    node.runtime.AnswerAll();
    node.Start(id);
    return id;
  }
  // On a node with NestedPolicy: takes two CPUs from the pool around it, where "big" lacks them.
  void RunNested() {
    nested_.emplace(test::S1Ht(), [this](const Machine& machine) {
      auto policy = std::make_unique<NestedPolicy>(machine);
      nested_policy_ = policy.get();
      return policy;
    });
    manager_ = &nested_->manager();
    all_ = {RunWithoutLimit(*nested_, "small"), RunWithoutLimit(*nested_, "big")};
    Use({all_[0]}, 1.9, 0);
    Use({all_[1]}, 2.1, 40);
  }
  std::string PoolOf(const ContainerId& id) { return node_.Known(id)->placement.pool; }
  void Use(const std::vector<ContainerId>& ids, double cpus, double waited) {
    for (const ContainerId& id : ids)
      use_[std::string(id.value())] = {cpus, waited};
  }
  // Samples of ten seconds.
  void Sample(int count) {
    for (int i = 0; i < count; ++i) {
      UsageFigures figures{.until = clock_.Now() + seconds(10),
                           .from = clock_.Steady(),
                           .at = clock_.Steady() + seconds(10),
                           .complete = true};
      for (const ContainerId& id : all_) {
        const auto& [cpus, waited] = use_[std::string(id.value())];
        figures.containers.push_back({.subject = {.id = std::string(id.value())},
                                      .cpu_used = cpus,
                                      .waited_percent = waited});
      }
      clock_.Advance(seconds(10));
      observer_->Observe(figures);
    }
  }
  std::vector<std::string> Pools() {
    std::vector<std::string> pools;
    for (const ContainerId& id : all_)
      pools.push_back(PoolOf(id));
    return pools;
  }
  // The moved container after an Apply that moves one.
  ContainerId Move() {
    const StatusOr<UseRound> round = rebalancer_.Apply(std::nullopt);
    EXPECT_TRUE(round.ok()) << round.status();
    if (!round.ok() || round->moves.empty()) return ContainerId();
    return ContainerId(round->moves[0].id);
  }

  test::TestNode node_{test::S2NoHt(), TopologyAware};
  std::optional<test::TestNode> nested_;
  NestedPolicy* nested_policy_ = nullptr;
  ManualClock clock_;
  ResourceManager* manager_ = &node_.manager();
  std::chrono::milliseconds looked_on_{0};
  UseRebalancer rebalancer_{{.clock = clock_,
                             .manager = [this] { return manager_; },
                             .look_on = [this](auto time) { looked_on_ = time; }}};
  UseRebalancer* observer_ = &rebalancer_;
  std::vector<ContainerId> all_;
  std::vector<ContainerId> crowded_;
  std::map<std::string, std::pair<double, double>> use_;
};

TEST_F(UseRebalancerTest, WithoutSamplesNothingIsPlanned) {
  EXPECT_EQ(rebalancer_.Preview(std::nullopt).status().code(), StatusCode::kFailedPrecondition);
  manager_ = nullptr;
  EXPECT_EQ(rebalancer_.Preview(std::nullopt).status().code(), StatusCode::kFailedPrecondition);
  Sample(1);
}

TEST_F(UseRebalancerTest, APreviewTellsNumbersAndChangesNothing) {
  ASSERT_THAT(crowded_, SizeIs(2));
  Sample(1);
  const auto before = Pools();
  const UseRound round = Must(rebalancer_.Preview(std::nullopt));
  ASSERT_THAT(round.moves, SizeIs(1));
  EXPECT_THAT(round.moves[0].text, HasSubstr("uses 1.90 CPUs and waits in 40 % of the time"));
  EXPECT_THAT(round.moves[0].gain, DoubleNear(2.33 - 0.17, 0.02));
  EXPECT_THAT(round.lacking_predicted, DoubleNear(0, 0.4));
  EXPECT_THAT(round.placements, SizeIs(1));
  EXPECT_EQ(round.containers, 4U);
  EXPECT_EQ(Pools(), before);
  EXPECT_THAT(rebalancer_.rounds(), IsEmpty());
}

TEST_F(UseRebalancerTest, MovesNeedHalfAMinuteOfSamples) {
  Sample(2);
  const Status status = rebalancer_.Apply(std::nullopt).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("20 s only: 30 s are needed"));
  EXPECT_GT(looked_on_, seconds(10));
  Sample(1);
  EXPECT_TRUE(rebalancer_.Apply(std::nullopt).ok());
}

TEST_F(UseRebalancerTest, MovesThatBringWhatWasPredictedAreKept) {
  Sample(3);
  const ContainerId moved = Move();
  ASSERT_FALSE(moved.empty());
  const std::string pool = PoolOf(moved);
  EXPECT_THAT(pool, HasSubstr("#0"));
  EXPECT_THAT(node_.Known(moved)->placement.reason, HasSubstr("by what is used"));
  EXPECT_EQ(rebalancer_.rounds().back().state, State::kMeasuring);
  EXPECT_THAT(rebalancer_.rounds().back().placements, IsEmpty()) << "of the answer alone";
  Use(crowded_, 3, 0);
  Sample(5);
  EXPECT_EQ(rebalancer_.rounds().back().state, State::kMeasuring);
  EXPECT_EQ(rebalancer_.Apply(std::nullopt).status().code(), StatusCode::kFailedPrecondition);
  Sample(2);
  EXPECT_EQ(rebalancer_.rounds().back().state, State::kKept);
  EXPECT_EQ(PoolOf(moved), pool);
  EXPECT_THAT(rebalancer_.AboutOf(std::string(moved.value())), HasSubstr("kept"));
}

TEST_F(UseRebalancerTest, MovesThatBringTooLittleAreTakenBackOnce) {
  Sample(3);
  const auto before = Pools();
  const ContainerId moved = Move();
  ASSERT_NE(Pools(), before);
  const ContainerId& other = crowded_[0] == moved ? crowded_[1] : crowded_[0];
  // The one that stays now wants all that the other one leaves.
  Use({other}, 4, 50);
  Sample(7);
  EXPECT_EQ(rebalancer_.rounds().back().state, State::kTakenBack);
  EXPECT_EQ(Pools(), before);
  EXPECT_THAT(rebalancer_.AboutOf(std::string(moved.value())), HasSubstr("taken back"));
  // No ping-pong: it stays there for two hours.
  Use(crowded_, 1.9, 40);
  Sample(12);
  const UseRound again = Must(rebalancer_.Preview(std::nullopt));
  for (const UseRound::Move& move : again.moves)
    EXPECT_NE(move.id, moved.value());
  Sample(6 * 120);
  EXPECT_THAT(rebalancer_.Preview(std::nullopt)->moves, SizeIs(1));
}

TEST_F(UseRebalancerTest, MovesAreNotMeasuredWhereSamplesEndOrOthersDecide) {
  Sample(3);
  const ContainerId moved = Move();
  const auto after = Pools();
  clock_.Advance(seconds(600));
  EXPECT_EQ(rebalancer_.rounds().back().state, State::kNotMeasured);
  EXPECT_EQ(Pools(), after);
  EXPECT_THAT(rebalancer_.AboutOf(std::string(moved.value())), HasSubstr("not measured"));
}

// It leaves exactly the CPUs that the pool around its former one lacked.
TEST_F(UseRebalancerTest, AMoveThatRelievesAnotherPoolIsKept) {
  RunNested();
  Sample(3);
  ASSERT_EQ(Move(), all_[0]);
  Use({all_[1]}, 3.5, 0);
  Sample(7);
  EXPECT_EQ(rebalancer_.rounds().back().state, State::kKept) << rebalancer_.rounds().back().note;
  EXPECT_EQ(nested_->Known(all_[0])->placement.pool, "beside");
}

TEST_F(UseRebalancerTest, WhatCannotMoveBackIsNotCalledTakenBack) {
  RunNested();
  Sample(3);
  ASSERT_EQ(Move(), all_[0]);
  nested_policy_->takes_back = false;
  Use({all_[1]}, 4, 50);
  Sample(7);
  const UseRound& round = rebalancer_.rounds().back();
  EXPECT_EQ(round.state, State::kTakenBack) << "too little was gained";
  EXPECT_NE(round.moves.at(0).state, State::kTakenBack);
  EXPECT_THAT(round.note, HasSubstr("predicted; what could not move back stays"));
  EXPECT_EQ(nested_->Known(all_[0])->placement.pool, "beside");
}

TEST_F(UseRebalancerTest, APolicyFollowsNoUseOfAMoment) {
  RunNested();
  Sample(2);
  EXPECT_EQ(nested_policy_->followed, 0);
  Sample(1);
  EXPECT_EQ(nested_policy_->followed, 1);
  rebalancer_.Lose();
  Sample(2);
  EXPECT_EQ(nested_policy_->followed, 1);
  Sample(2);
  EXPECT_EQ(nested_policy_->followed, 3);
}

TEST_F(UseRebalancerTest, AContainerThatEndedIsNotJudged) {
  Sample(3);
  const ContainerId moved = Move();
  node_.Stop(moved);
  node_.Remove(moved);
  Sample(7);
  EXPECT_EQ(rebalancer_.rounds().back().state, State::kNotMeasured);
}

TEST_F(UseRebalancerTest, NothingMovesByItselfUnlessItIsConfigured) {
  const auto before = Pools();
  Sample(60);
  EXPECT_EQ(Pools(), before);
  rebalancer_.Configure({.rebalance_every = std::chrono::minutes(1), .rebalance_moves = 1});
  Sample(8);
  EXPECT_NE(Pools(), before);
  EXPECT_THAT(rebalancer_.rounds(), SizeIs(1));
}

// A former daemon may have taken a container back a moment ago.
TEST_F(UseRebalancerTest, AfterARestartNothingMovesByItselfWhileAHoldOffMayLast) {
  UseRebalancer next(
      {.clock = clock_, .manager = [this] { return manager_; }, .after_restart = true});
  next.Configure({.rebalance_every = std::chrono::minutes(1), .rebalance_moves = 1});
  const auto before = Pools();
  observer_ = &next;
  Sample(6 * 119);
  EXPECT_EQ(Pools(), before);
  EXPECT_THAT(next.rounds(), IsEmpty());
  Sample(6 * 3);
  EXPECT_NE(Pools(), before);
}

TEST_F(UseRebalancerTest, WhatIsKeptOfRoundsIsBounded) {
  rebalancer_.Configure({.rebalance_every = std::chrono::minutes(1)});
  for (int i = 0; i < 40; ++i) {
    for (const ContainerId& id : all_)
      Use({id}, PoolOf(id).ends_with("#1") ? 1.9 : 0.1, PoolOf(id).ends_with("#1") ? 40 : 0);
    Sample(6 * 60);
  }
  EXPECT_LE(rebalancer_.rounds().size(), UseRebalancer::kKeptRounds);
}

TEST_F(UseRebalancerTest, APolicyWithOnePoolHasNothingToMove) {
  test::TestNode small(test::S1Ht(), TopologyAware);
  manager_ = &small.manager();
  Sample(1);
  const UseRound round = Must(rebalancer_.Preview(std::nullopt));
  EXPECT_THAT(round.moves, IsEmpty());
  EXPECT_THAT(round.note, HasSubstr("policy topology-aware has no shared pools between which"));
}

}  // namespace
}  // namespace resmgr
