// SPDX-License-Identifier: Apache-2.0
// A rebalance that is repeated comes to an end, whatever affinities containers have.
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/policy/use_balance.h"
#include "policies/topology-aware/testing/topology_node.h"
#include "test/support/seed.h"

namespace resmgr {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using enum QosClass;

// Rebalances until nothing moves; the last rebalance does not count. One is usually enough; a
// second one uses the room that the first one's moves made.
constexpr int kMostRebalances = 4;

class RebalancedNode : public test::TopologyNode {
 public:
  explicit RebalancedNode(Machine present) : TopologyNode(std::move(present)) {}

  void Want(ContainerKey key, const std::string& annotation, const std::string& other, int weight) {
    Pod& pod = snapshot().PodOf(key);
    pod.annotations.Set(
        "resource-policy.nri.io/" + annotation,
        fmt::format("{}: [{{scope: {{key: namespace, operator: Exists}}, match: {{key: name, "
                    "operator: In, values: ['{}']}}, weight: {}}}]",
                    pod.name, other, weight));
  }
  // The number of rebalances until one changed nothing; the limit of tries if there was none.
  int RebalanceUntilStable() {
    for (int count = 0; count <= kMostRebalances; ++count) {
      if (Rebalance().empty()) return count;
    }
    return kMostRebalances + 1;
  }
};

Machine TwoPackages() {
  return test::MakeMachine({.packages = 2, .nodes = 2, .cores = 4, .threads = 2});
}

// Two containers: the first has an affinity of this weight to the second, which has an
// anti-affinity of that weight to the first.
std::pair<ContainerKey, ContainerKey> PlaceFollowerAndAvoider(RebalancedNode& node, int affinity,
                                                              int anti_affinity) {
  const ContainerKey follower = node.Add("follower", kBurstable, 500);
  node.Want(follower, "affinity", "avoider", affinity);
  EXPECT_TRUE(node.Place(follower).ok());
  const ContainerKey avoider = node.Add("avoider", kBurstable, 500);
  node.Want(avoider, "anti-affinity", "follower", anti_affinity);
  EXPECT_TRUE(node.Place(avoider).ok());
  return {follower, avoider};
}

TEST(RebalanceTest, AFollowerAndAnAvoiderComeToRest) {
  RebalancedNode node(TwoPackages());
  PlaceFollowerAndAvoider(node, 1, 1);
  EXPECT_LE(node.RebalanceUntilStable(), kMostRebalances);
}

TEST(RebalanceTest, ARingOfFollowersComesToRest) {
  RebalancedNode node(TwoPackages());
  constexpr int kRing = 5;
  for (int i = 0; i < kRing; ++i) {
    const ContainerKey key = node.Add(fmt::format("c{}", i), kBurstable, 300);
    const std::string next = fmt::format("c{}", (i + 1) % kRing);
    node.Want(key, i % 2 == 0 ? "affinity" : "anti-affinity", next, 1 + i);
    ASSERT_TRUE(node.Place(key).ok());
  }
  EXPECT_LE(node.RebalanceUntilStable(), kMostRebalances);
}

TEST(RebalanceTest, TheStrongerOfAffinityAndAntiAffinityWins) {
  RebalancedNode node(TwoPackages());
  const auto [follower, avoider] = PlaceFollowerAndAvoider(node, 5, 2);
  ASSERT_NE(node.PlacementOf(follower).pool, node.PlacementOf(avoider).pool);
  EXPECT_LE(node.RebalanceUntilStable(), 1);
  EXPECT_EQ(node.PlacementOf(follower).pool, node.PlacementOf(avoider).pool);
}

struct RandomCase {
  const char* name;
  Machine (*machine)();
};

class RandomRebalanceTest : public testing::TestWithParam<RandomCase> {};

// Containers of all kinds that want each other, or not, at random; some end.
void Fill(RebalancedNode& node, std::mt19937_64& random) {
  const auto number = [&random](int first, int last) {
    return std::uniform_int_distribution<int>(first, last)(random);
  };
  const int count = number(2, 40);
  std::vector<ContainerKey> keys;
  for (int i = 0; i < count; ++i) {
    const auto qos = static_cast<QosClass>(number(0, 2));
    const ContainerKey key =
        node.Add(fmt::format("c{}", i), qos, qos == kBestEffort ? 0 : 100 * number(1, 30));
    Container& container = node.ContainerOf(key);
    if (qos == kBurstable) container.requirements.cpu_limit.value *= number(0, 3);
    if (qos != kBestEffort) {
      container.requirements.memory_request.value = int64_t{number(0, 6)} << 30;
      container.requirements.memory_limit = container.requirements.memory_request;
    }
    for (const char* const annotation : {"affinity", "anti-affinity"}) {
      if (number(0, 2) == 0) continue;
      node.Want(key, annotation, fmt::format("c{}", number(0, count - 1)), number(1, 5));
    }
    if (number(0, 1) == 0) node.Annotate(key, "allow-rebalance", "true");
    if (node.Place(key).ok()) keys.push_back(key);
  }
  for (const ContainerKey key : keys)
    if (number(0, 3) == 0) node.Remove(key);
}

TEST_P(RandomRebalanceTest, ComesToRestForRandomAffinities) {
  const uint64_t first = test::SeedOr(815);
  for (uint64_t round = 0; round < 25; ++round) {
    SCOPED_TRACE(test::Repeat(first + round));
    std::mt19937_64 random(first + round);
    RebalancedNode node(GetParam().machine());
    Fill(node, random);
    ASSERT_LE(node.RebalanceUntilStable(), kMostRebalances);
    ASSERT_FALSE(HasFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, RandomRebalanceTest,
                         testing::Values(RandomCase{"TwoPackages", TwoPackages},
                                         RandomCase{"M80", test::M80}, RandomCase{"F80", test::F80},
                                         RandomCase{"U16Smt", test::U16Smt},
                                         RandomCase{"U16TwoNodes", test::U16TwoNodes},
                                         RandomCase{"L256", test::L256},
                                         RandomCase{"Q288", test::Q288}),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

// Containers move between shared pools because of their use.

class SharedMovesTest : public testing::Test, protected test::TopologyNode {
 protected:
  SharedMovesTest() : TopologyNode(test::M80()) {}

  ContainerKey Share(std::string_view name, int64_t milli_cpu, int64_t limit) {
    const ContainerKey key = Add(name, QosClass::kBurstable, milli_cpu);
    ContainerOf(key).requirements.cpu_limit = MilliCpu{limit};
    return key;
  }
  ContainerKey RunShared(std::string_view name, int64_t milli_cpu, int64_t limit) {
    return *Place(Share(name, milli_cpu, limit));
  }
  std::map<ContainerKey, std::string> Pools() {
    std::map<ContainerKey, std::string> pools;
    snapshot().ForEachContainer([&](const Pod&, const Container& container) {
      pools[container.key] = container.placement.pool + " " + container.placement.cpus->ToString();
    });
    return pools;
  }
};

TEST_F(SharedMovesTest, PoolsAndContainersAreThoseThatShare) {
  const ContainerKey key = RunShared("web", 500, 2000);
  const policy::SharedPools shared = policy().Shared(snapshot());
  ASSERT_EQ(shared.containers.size(), 1U);
  EXPECT_EQ(shared.containers[0].key, key);
  EXPECT_EQ(shared.pools[shared.containers[0].pool].name, PlacementOf(key).pool);
  EXPECT_EQ(shared.pools[shared.containers[0].pool].cpus, *PlacementOf(key).cpus);
}

TEST_F(SharedMovesTest, PoolsOfTheSameSizeComeBeforeLargerOnes) {
  const ContainerKey key = RunShared("web", 500, 2000);
  const std::vector<std::string> targets = policy().TargetsOf(snapshot(), key);
  ASSERT_FALSE(targets.empty());
  EXPECT_THAT(targets, Not(Contains(PlacementOf(key).pool)));
  EXPECT_THAT(targets.front(), HasSubstr("NUMA node"));
  EXPECT_THAT(targets.back(), Not(HasSubstr("NUMA node")));
}

TEST_F(SharedMovesTest, AMoveAndItsReturnGiveTheStateBefore) {
  const ContainerKey key = RunShared("web", 500, 2000);
  RunShared("db", 500, 2000);
  const auto before = Pools();
  const Placement held = PlacementOf(key);
  const std::string target = policy().TargetsOf(snapshot(), key).front();
  CarryOut(policy().MoveShared(snapshot(), std::vector<policy::PoolMove>{{key, target}}));
  EXPECT_EQ(PlacementOf(key).pool, target);
  EXPECT_FALSE(PlacementOf(key).cpus->Intersects(*held.cpus));
  EXPECT_THAT(PlacementOf(key).reason, HasSubstr("by what is used"));
  CarryOut(policy().MoveShared(snapshot(), std::vector<policy::PoolMove>{{key, held.pool}}));
  EXPECT_EQ(Pools(), before);
  EXPECT_EQ(PlacementOf(key).mems, held.mems);
}

TEST_F(SharedMovesTest, AnImpossibleMoveChangesNothing) {
  const ContainerKey web = RunShared("web", 500, 2000);
  const ContainerKey db = RunShared("db", 500, 2000);
  const auto before = Pools();
  const std::string target = policy().TargetsOf(snapshot(), web).front();
  for (const policy::PoolMove& wrong :
       {policy::PoolMove{db, "no such pool"}, policy::PoolMove{ContainerKey{77}, target}}) {
    const StatusOr<Plan> plan =
        policy().MoveShared(snapshot(), std::vector<policy::PoolMove>{{web, target}, wrong});
    EXPECT_EQ(plan.status().code(), StatusCode::kFailedPrecondition);
  }
  const policy::SharedPools shared = policy().Shared(snapshot());
  for (const policy::SharedContainer& container : shared.containers)
    EXPECT_EQ(shared.pools[container.pool].name, PlacementOf(container.key).pool);
  EXPECT_EQ(Pools(), before);
}

TEST_F(SharedMovesTest, ExclusiveContainersAndThoseWithAffinitiesStay) {
  const ContainerKey exclusive = TopologyNode::Run("own", kGuaranteed, 2000);
  ASSERT_FALSE(PlacementOf(exclusive).exclusive.empty());
  const ContainerKey fond = Share("fond", 500, 2000);
  snapshot().PodOf(fond).annotations.Set("resource-policy.nri.io/affinity",
                                         "fond: [{scope: {key: namespace, operator: Exists}, "
                                         "match: {key: name, operator: In, values: [own]}, "
                                         "weight: 5}]");
  ASSERT_TRUE(Place(fond).ok());
  EXPECT_THAT(policy().TargetsOf(snapshot(), exclusive), IsEmpty());
  EXPECT_THAT(policy().TargetsOf(snapshot(), fond), IsEmpty());
  const StatusOr<Plan> plan = policy().MoveShared(
      snapshot(), std::vector<policy::PoolMove>{{fond, policy().Shared(snapshot()).pools[0].name}});
  EXPECT_THAT(std::string(Message(plan.status())), HasSubstr("affinities"));
}

// Random requests and uses: plans are legal, keep the budget, and predict the later loads.
TEST_F(SharedMovesTest, PlansAreLegalAndPredictTheLoadsThatFollow) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    snapshot() = test::TestSnapshot();
    RestartPolicy();
    policy::MeasuredUse use{.over = std::chrono::seconds(60)};
    const auto count = static_cast<int>(random() % 60) + 1;
    for (int i = 0; i < count; ++i) {
      const ContainerKey key =
          RunShared("c" + std::to_string(i), static_cast<int64_t>(random() % 900),
                    random() % 2 == 0 ? 0 : 4000);
      const double cpus = static_cast<double>(random() % 4000) / 1000;
      use.containers[key] = {.cpus = cpus, .pressure = static_cast<double>(random() % 60)};
    }
    const auto before = Pools();
    const policy::UseLimits limits{.most_moves = 3};
    const policy::UsePlan plan = policy::PlanByUse(policy(), snapshot(), use, limits, {});
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
    CarryOut(policy().MoveShared(snapshot(), moves));
    EXPECT_NEAR(policy::Lacking(policy::LoadsOf(policy(), snapshot(), use)), plan.lacking_after,
                0.001);
  }
}

}  // namespace
}  // namespace resmgr
