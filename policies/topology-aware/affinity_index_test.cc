// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "policies/topology-aware/affinity.h"

namespace resmgr {
namespace {

constexpr size_t kPools = 7;

// Containers that come and go, an index that follows them, and a plain computation of the same
// answer.
class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {}

  size_t Number(size_t count) { return random_() % count; }
  std::string Word() { return fmt::format("w{}", Number(4)); }

  void Add() {
    Container& container = snapshot_.Add(Word(), QosClass::kBurstable, 100);
    Pod& pod = snapshot_.PodOf(container.key);
    pod.namespace_name = Word();
    pod.qos = Number(2) == 0 ? QosClass::kGuaranteed : QosClass::kBestEffort;
    if (Number(2) == 0) pod.labels.Set("app", Word());
    for (size_t i = 0; i < 3; ++i)
      container.labels.Set(fmt::format("l{}", Number(50)), Word());
    Place(container.key);
  }
  // Puts the container into some pool, or into none.
  void Place(ContainerKey key) {
    index_.Erase(key);
    pools_.erase(key);
    if (Number(8) == 0) return;
    pools_[key] = static_cast<int>(Number(kPools));
    index_.Put(snapshot_.PodOf(key), snapshot_.At(key), pools_[key]);
  }
  // Moves a container from its pool to another one.
  void Move() {
    const auto pool = pools_.find(Some());
    if (pool == pools_.end()) return;
    pool->second = static_cast<int>(Number(kPools));
    index_.Move(pool->first, pool->second);
  }
  void Remove() {
    const ContainerKey key = Some();
    index_.Erase(key);
    pools_.erase(key);
    snapshot_.Remove(key);
  }
  // The runtime has named it.
  void SetId() { snapshot_.At(Some()).id = ContainerId(Word()); }
  void Forget() { index_.Clear(); }

  ContainerKey Some() {
    std::vector<ContainerKey> keys;
    snapshot_.ForEachContainer(
        [&keys](const Pod&, const Container& container) { keys.push_back(container.key); });
    return keys[Number(keys.size())];
  }

  std::string SomeKey() {
    static constexpr std::array<std::string_view, 10> kKeys = {
        "name",    "namespace", "qosclass",        "pod/name",        "pod/labels/app",
        "pod/uid", "id",        ":namespace:name", ":,-namespace,id", "tags/none"};
    const size_t kind = Number(kKeys.size() + 5);
    return kind < kKeys.size() ? std::string(kKeys[kind]) : fmt::format("labels/l{}", Number(50));
  }
  Expression SomeExpression() {
    static constexpr std::array<std::string_view, 6> kOperators = {
        "In", "NotIn", "Matches", "MatchesNot", "Exists", "NotExists"};
    if (Number(8) == 0) return Expression();
    const std::string_view op = kOperators[Number(kOperators.size())];
    std::string values = fmt::format(", values: ['{}']", Number(2) == 0 ? Word() : "w*");
    if (op.ends_with("Exists")) values.clear();
    const auto node = ParseYaml(fmt::format("{{key: '{}', operator: {}{}}}", SomeKey(), op, values),
                                "expression");
    return Expression::Parse(node.value()).value();
  }
  std::vector<Affinity> SomeAffinities() {
    std::vector<Affinity> affinities(1 + Number(4));
    for (Affinity& affinity : affinities) {
      affinity.weight = static_cast<int>(Number(9)) - 4;
      if (Number(3) != 0) affinity.scope = SomeExpression();
      affinity.match = SomeExpression();
    }
    return affinities;
  }

  void Compare() {
    const std::vector<Affinity> affinities = SomeAffinities();
    const Pod& own = snapshot_.PodOf(Some());
    std::vector<int64_t> expected(kPools);
    snapshot_.ForEachContainer([&](const Pod& pod, const Container& container) {
      const auto pool = pools_.find(container.key);
      if (pool == pools_.end()) return;
      for (const Affinity& affinity : affinities) {
        if (!affinity.Meets(own, pod, container)) continue;
        expected[static_cast<size_t>(pool->second)] += affinity.weight;
      }
    });
    EXPECT_EQ(index_.Weights(affinities, own, kPools, snapshot_,
                             [this](ContainerKey key) -> std::optional<int> {
                               const auto pool = pools_.find(key);
                               if (pool == pools_.end()) return std::nullopt;
                               return pool->second;
                             }),
              expected);
  }

 private:
  std::mt19937_64 random_;
  test::TestSnapshot snapshot_;
  std::map<ContainerKey, int> pools_;
  AffinityIndex index_;
};

TEST(AffinityIndexTest, AgreesWithAskingEveryContainer) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    World world(seed);
    for (int i = 0; i < 30; ++i)
      world.Add();
    for (int step = 0; step < 500 && !testing::Test::HasFailure(); ++step) {
      switch (world.Number(9)) {
        case 0:
          world.Add();
          break;
        case 1:
          world.Remove();
          world.Add();
          break;
        case 2:
          world.SetId();
          break;
        case 3:
          if (step % 10 == 0) world.Forget();
          break;
        case 4:
          world.Place(world.Some());
          break;
        case 5:
          world.Move();
          break;
        default:
          world.Compare();
      }
    }
  }
}

}  // namespace
}  // namespace resmgr
