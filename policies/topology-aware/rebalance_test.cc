// SPDX-License-Identifier: Apache-2.0
// A rebalance that is repeated comes to an end, whatever affinities containers have.
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/policy/testing/checked_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"
#include "test/support/seed.h"

namespace resmgr {
namespace {

using enum QosClass;

// Rebalances until nothing moves; the last rebalance does not count. One is usually enough; a
// second one uses the room that the first one's moves made.
constexpr int kMostRebalances = 4;

class RebalancedNode : public test::CheckedPolicy {
 public:
  explicit RebalancedNode(Machine present) : CheckedPolicy(std::move(present)) {
    SetPolicy(TopologyAwarePolicy::Create(
        {.machine = machine(), .available = machine().allowed(), .reserved = test::Cpus("0")}));
  }

  // The container may be changed before Place.
  Container& Add(std::string_view name, QosClass qos, int64_t milli_cpu) {
    Container& container = snapshot().Add(name, qos, milli_cpu);
    container.requirements.cpu_limit = container.requirements.cpu_request;
    return container;
  }
  void Want(ContainerKey key, const std::string& annotation, const std::string& other, int weight) {
    Pod& pod = snapshot().PodOf(key);
    pod.annotations.Set(
        "resource-policy.nri.io/" + annotation,
        fmt::format("{}: [{{scope: {{key: namespace, operator: Exists}}, match: {{key: name, "
                    "operator: In, values: ['{}']}}, weight: {}}}]",
                    pod.name, other, weight));
  }
  void Annotate(ContainerKey key, const std::string& annotation, const std::string& value) {
    snapshot().PodOf(key).annotations.Set(annotation + ".resource-policy.nri.io", value);
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
  const ContainerKey follower = node.Add("follower", kBurstable, 500).key;
  node.Want(follower, "affinity", "avoider", affinity);
  EXPECT_TRUE(node.Place(follower).ok());
  const ContainerKey avoider = node.Add("avoider", kBurstable, 500).key;
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
    const ContainerKey key = node.Add(fmt::format("c{}", i), kBurstable, 300).key;
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
    Container& container =
        node.Add(fmt::format("c{}", i), qos, qos == kBestEffort ? 0 : 100 * number(1, 30));
    if (qos == kBurstable) container.requirements.cpu_limit.value *= number(0, 3);
    if (qos != kBestEffort) {
      container.requirements.memory_request.value = int64_t{number(0, 6)} << 30;
      container.requirements.memory_limit = container.requirements.memory_request;
    }
    const ContainerKey key = container.key;
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

}  // namespace
}  // namespace resmgr
