// SPDX-License-Identifier: Apache-2.0
// Containers move between shared pools because of their use.
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/policy/plan_check.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "pkg/policy/use_balance.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"
#include "test/support/seed.h"

namespace resmgr {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SharedMovesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Policy>> policy = TopologyAwarePolicy::Create(
        {.machine = machine_, .available = machine_.allowed(), .reserved = test::Cpus("0")});
    ASSERT_TRUE(policy.ok()) << policy.status();
    policy_ = *std::move(policy);
  }
  ContainerKey Place(std::string_view name, int64_t milli_cpu, int64_t limit,
                     const std::string& annotation = "", const std::string& value = "") {
    Container& container = snapshot_.Add(name, QosClass::kBurstable, milli_cpu);
    container.requirements.cpu_limit = MilliCpu{limit};
    const ContainerKey key = container.key;
    if (!annotation.empty()) snapshot_.PodOf(key).annotations.Set(annotation, value);
    Apply(policy_->Allocate(snapshot_, snapshot_.PodOf(key), snapshot_.At(key), nullptr));
    return key;
  }
  void Apply(const StatusOr<Plan>& plan) {
    ASSERT_TRUE(plan.ok()) << plan.status();
    const Status checked = CheckPlan(machine_, snapshot_, *plan);
    ASSERT_TRUE(checked.ok()) << checked;
    snapshot_.Apply(*plan);
  }
  const Placement& PlaceOf(ContainerKey key) { return snapshot_.At(key).placement; }
  std::map<ContainerKey, std::string> Pools() {
    std::map<ContainerKey, std::string> pools;
    snapshot_.ForEachContainer([&](const Pod&, const Container& container) {
      pools[container.key] = container.placement.pool + " " + container.placement.cpus->ToString();
    });
    return pools;
  }

  const Machine machine_ = test::M80();
  std::unique_ptr<Policy> policy_;
  test::TestSnapshot snapshot_;
};

TEST_F(SharedMovesTest, PoolsAndContainersAreThoseThatShare) {
  const ContainerKey key = Place("web", 500, 2000);
  const policy::SharedPools shared = policy_->Shared(snapshot_);
  ASSERT_EQ(shared.containers.size(), 1U);
  EXPECT_EQ(shared.containers[0].key, key);
  EXPECT_EQ(shared.pools[shared.containers[0].pool].name, PlaceOf(key).pool);
  EXPECT_EQ(shared.pools[shared.containers[0].pool].cpus, *PlaceOf(key).cpus);
}

TEST_F(SharedMovesTest, PoolsOfTheSameSizeComeBeforeLargerOnes) {
  const ContainerKey key = Place("web", 500, 2000);
  const std::vector<std::string> targets = policy_->TargetsOf(snapshot_, key);
  ASSERT_FALSE(targets.empty());
  EXPECT_THAT(targets, Not(Contains(PlaceOf(key).pool)));
  EXPECT_THAT(targets.front(), HasSubstr("NUMA node"));
  EXPECT_THAT(targets.back(), Not(HasSubstr("NUMA node")));
}

TEST_F(SharedMovesTest, AMoveAndItsReturnGiveTheStateBefore) {
  const ContainerKey key = Place("web", 500, 2000);
  Place("db", 500, 2000);
  const auto before = Pools();
  const Placement held = PlaceOf(key);
  const std::string target = policy_->TargetsOf(snapshot_, key).front();
  Apply(policy_->MoveShared(snapshot_, std::vector<policy::PoolMove>{{key, target}}));
  EXPECT_EQ(PlaceOf(key).pool, target);
  EXPECT_FALSE(PlaceOf(key).cpus->Intersects(*held.cpus));
  EXPECT_THAT(PlaceOf(key).reason, HasSubstr("by what is used"));
  Apply(policy_->MoveShared(snapshot_, std::vector<policy::PoolMove>{{key, held.pool}}));
  EXPECT_EQ(Pools(), before);
  EXPECT_EQ(PlaceOf(key).mems, held.mems);
}

TEST_F(SharedMovesTest, AnImpossibleMoveChangesNothing) {
  const ContainerKey web = Place("web", 500, 2000);
  const ContainerKey db = Place("db", 500, 2000);
  const auto before = Pools();
  const std::string target = policy_->TargetsOf(snapshot_, web).front();
  for (const policy::PoolMove& wrong :
       {policy::PoolMove{db, "no such pool"}, policy::PoolMove{ContainerKey{77}, target}}) {
    const StatusOr<Plan> plan =
        policy_->MoveShared(snapshot_, std::vector<policy::PoolMove>{{web, target}, wrong});
    EXPECT_EQ(plan.status().code(), StatusCode::kFailedPrecondition);
  }
  const policy::SharedPools shared = policy_->Shared(snapshot_);
  for (const policy::SharedContainer& container : shared.containers)
    EXPECT_EQ(shared.pools[container.pool].name, PlaceOf(container.key).pool);
  EXPECT_EQ(Pools(), before);
}

TEST_F(SharedMovesTest, ExclusiveContainersAndThoseWithAffinitiesStay) {
  Container& own = snapshot_.Add("own", QosClass::kGuaranteed, 2000);
  own.requirements.cpu_limit = own.requirements.cpu_request;
  const ContainerKey exclusive = own.key;
  Apply(policy_->Allocate(snapshot_, snapshot_.PodOf(exclusive), snapshot_.At(exclusive), nullptr));
  ASSERT_FALSE(PlaceOf(exclusive).exclusive.empty());
  const ContainerKey fond = Place("fond", 500, 2000, "resource-policy.nri.io/affinity",
                                  "fond: [{scope: {key: namespace, operator: Exists}, match: {key: "
                                  "name, operator: In, values: [own]}, weight: 5}]");
  EXPECT_THAT(policy_->TargetsOf(snapshot_, exclusive), IsEmpty());
  EXPECT_THAT(policy_->TargetsOf(snapshot_, fond), IsEmpty());
  const StatusOr<Plan> plan = policy_->MoveShared(
      snapshot_, std::vector<policy::PoolMove>{{fond, policy_->Shared(snapshot_).pools[0].name}});
  EXPECT_THAT(std::string(Message(plan.status())), HasSubstr("affinities"));
}

// Random requests and uses: plans are legal, keep the budget, and predict the later loads.
TEST_F(SharedMovesTest, PlansAreLegalAndPredictTheLoadsThatFollow) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    snapshot_ = test::TestSnapshot();
    SetUp();
    policy::MeasuredUse use{.over = std::chrono::seconds(60)};
    const auto count = static_cast<int>(random() % 60) + 1;
    for (int i = 0; i < count; ++i) {
      const ContainerKey key = Place("c" + std::to_string(i), static_cast<int64_t>(random() % 900),
                                     random() % 2 == 0 ? 0 : 4000);
      const double cpus = static_cast<double>(random() % 4000) / 1000;
      use.containers[key] = {.cpus = cpus, .pressure = static_cast<double>(random() % 60)};
    }
    const auto before = Pools();
    const policy::UseLimits limits{.most_moves = 3};
    const policy::UsePlan plan = policy::PlanByUse(*policy_, snapshot_, use, limits, {});
    EXPECT_EQ(Pools(), before);
    EXPECT_LE(plan.moves.size(), 3U);
    std::vector<policy::PoolMove> moves;
    double gain = 0;
    for (const policy::UseMove& move : plan.moves) {
      moves.push_back({move.key, move.to});
      EXPECT_GE(move.gain, limits.least_gain);
      EXPECT_LE(move.gain, move.wanted + 0.001);
      gain += move.gain;
    }
    EXPECT_NEAR(plan.lacking - plan.lacking_after, gain, 0.001);
    Apply(policy_->MoveShared(snapshot_, moves));
    EXPECT_NEAR(policy::Lacking(policy::LoadsOf(*policy_, snapshot_, use)), plan.lacking_after,
                0.001);
  }
}

}  // namespace
}  // namespace resmgr
