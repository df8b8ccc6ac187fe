// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/use_rebalancer.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/manual_clock.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using std::chrono::seconds;
using State = UseRound::State;
using testing::DoubleNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::unique_ptr<Policy> TopologyAware(const Machine& machine) {
  return TopologyAwarePolicy::Create(
             {.machine = machine, .available = machine.allowed(), .reserved = test::Cpus("0")})
      .value();
}

// Two packages of CPUs 0-3 (0 is reserved) and 4-7; four containers, of which two are crowded in
// the second one.
class UseRebalancerTest : public testing::Test {
 protected:
  UseRebalancerTest() {
    std::map<std::string, std::vector<ContainerId>> pools;
    for (const std::string_view name : {"a", "b", "c", "d"}) {
      const ContainerId id = RunWithoutLimit(name);
      pools[PoolOf(id)].push_back(id);
      all_.push_back(id);
    }
    for (const auto& [name, ids] : pools)
      if (ids.size() > crowded_.size() && name.ends_with("#1")) crowded_ = ids;
    Use(crowded_, 1.9, 40);
  }

  ContainerId RunWithoutLimit(std::string_view name) {
    CreateRequest request =
        test::TestNode::Request(node_.AddPod(name, QosClass::kBurstable), name, 300);
    request.resources.cpu_quota.reset();
    const ContainerId id = node_.Create(request).value();
    node_.runtime.AnswerAll();
    node_.Start(id);
    return id;
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
      rebalancer_.Observe(figures);
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
  ManualClock clock_;
  ResourceManager* manager_ = &node_.manager();
  std::chrono::milliseconds looked_on_{0};
  UseRebalancer rebalancer_{{.clock = clock_,
                             .manager = [this] { return manager_; },
                             .look_on = [this](auto time) { looked_on_ = time; }}};
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
  const StatusOr<UseRound> round = rebalancer_.Preview(std::nullopt);
  ASSERT_TRUE(round.ok()) << round.status();
  ASSERT_THAT(round->moves, SizeIs(1));
  EXPECT_THAT(round->moves[0].text, HasSubstr("uses 1.90 CPUs and waits in 40 % of the time"));
  EXPECT_THAT(round->moves[0].gain, DoubleNear(2.33 - 0.17, 0.02));
  EXPECT_THAT(round->lacking_predicted, DoubleNear(0, 0.4));
  EXPECT_THAT(round->placements, SizeIs(1));
  EXPECT_EQ(round->containers, 4U);
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
  const StatusOr<UseRound> again = rebalancer_.Preview(std::nullopt);
  ASSERT_TRUE(again.ok());
  for (const UseRound::Move& move : again->moves)
    EXPECT_NE(move.id, moved.value());
  Sample(6 * 120);
  EXPECT_THAT(rebalancer_.Preview(std::nullopt)->moves, SizeIs(1));
}

TEST_F(UseRebalancerTest, MovesAreNotMeasuredWhereSamplesEndOrOthersDecide) {
  Sample(3);
  const ContainerId moved = Move();
  const auto after = Pools();
  clock_.Advance(seconds(600));
  ASSERT_TRUE(rebalancer_.Preview(std::nullopt).status().code() == StatusCode::kFailedPrecondition);
  EXPECT_EQ(rebalancer_.rounds().back().state, State::kNotMeasured);
  EXPECT_EQ(Pools(), after);
  EXPECT_THAT(rebalancer_.AboutOf(std::string(moved.value())), HasSubstr("not measured"));
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
  const StatusOr<UseRound> round = rebalancer_.Preview(std::nullopt);
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_THAT(round->moves, IsEmpty());
  EXPECT_THAT(round->note, HasSubstr("policy topology-aware has no shared pools between which"));
}

}  // namespace
}  // namespace resmgr
