// SPDX-License-Identifier: Apache-2.0
// With Alignment no exclusive container is split, over random containers on all machines.
#include "pkg/allocator/alignment.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/node_machines.h"
#include "test/integration/brain/policy_node.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using enum QosClass;

constexpr int kAlignedSteps = 80;

std::vector<PolicyFactory> AligningPolicies() {
  return {StaticPolicyFactory(), StaticPlusPolicyFactory(), TopologyAwarePolicyFactory()};
}

std::string Section(Alignment alignment) {
  return fmt::format("{{Alignment: {}}}", ToString(alignment));
}

// One life of a policy on one machine.
class AlignedLife : Draws {
 public:
  AlignedLife(const PolicyFactory& factory, const Machine& machine, Alignment alignment,
              uint64_t seed)
      : Draws(seed),
        alignment_(alignment),
        ordinary_(machine.online() - machine.isolated()),
        node_(factory, machine, CpuSet{ordinary_.First()}.ToString(), Section(alignment)),
        places_(node_.machine()) {}

  void Step() {
    const int64_t what = Number(1, 20);
    if (what <= 3) {
      Remove();
    } else if (what <= 7) {
      Resize();
    } else if (what <= 9) {
      Again();
    } else if (what == 10) {
      node_.RestartPolicy();
      EXPECT_THAT(node_.Reconcile().changes, IsEmpty());
    } else if (what == 11) {
      Forget();
    } else if (what == 12) {
      node_.Rebalance();
    } else {
      Create();
    }
  }

  void CheckAligned() {
    for (const ContainerKey key : keys_) {
      const CpuSet& exclusive = node_.PlacementOf(key).exclusive;
      EXPECT_TRUE(places_.IsAligned(alignment_, exclusive))
          << exclusive.ToString() << ": " << node_.PlacementOf(key).reason;
    }
  }

  int granted() const { return granted_; }
  int refused() const { return refused_; }

 private:
  int64_t Request() {
    const int64_t whole = 1000 * Number(1, std::max(2, node_.machine().online().size() / 4));
    return Number(1, 4) == 1 ? whole + Number(1, 999) : whole;
  }
  std::map<ContainerKey, std::string> All() {
    std::map<ContainerKey, std::string> all;
    for (const ContainerKey key : keys_)
      all[key] = node_.CpusOf(key) + " " + node_.ExclusiveOf(key);
    return all;
  }

  std::map<ContainerKey, std::string> Cpusets() {
    std::map<ContainerKey, std::string> all;
    for (const ContainerKey key : keys_)
      all[key] = node_.CpusOf(key);
    return all;
  }

  // Whether a place has the needed ordinary CPUs free, and the scheduler would send such a pod.
  bool FitsInOnePlace(int64_t milli_cpu) {
    CpuSet free = ordinary_ - CpuSet{ordinary_.First()};
    int64_t room = int64_t{1000} * free.size() - milli_cpu;
    for (const ContainerKey key : keys_) {
      free -= node_.PlacementOf(key).exclusive;
      room -= node_.snapshot().At(key).requirements.cpu_request.value;
    }
    return room >= 0 && std::ranges::any_of(places_.Of(alignment_), [&](const AlignedPlace& place) {
             return int64_t{1000} * place.cpus.CountCommon(free) >= milli_cpu;
           });
  }

  void Create() {
    const int64_t request = Request();
    const QosClass qos = Number(1, 5) == 1 ? kBurstable : kGuaranteed;
    const bool fits = request % 1000 == 0 && FitsInOnePlace(request);
    const std::map<ContainerKey, std::string> before = All();
    const StatusOr<ContainerKey> key = node_.Create("c", qos, request);
    if (key.ok()) {
      granted_ += node_.PlacementOf(*key).exclusive.empty() ? 0 : 1;
      keys_.push_back(*key);
      return;
    }
    ++refused_;
    EXPECT_EQ(All(), before) << "a refusal changes nothing";
    EXPECT_FALSE(fits) << request << "m refused: " << key.status();
    EXPECT_LT(Message(key.status()).size(), 1500);
  }

  void Remove() {
    if (keys_.empty()) return;
    ContainerKey& key = OneOf(keys_);
    node_.Remove(key);
    key = keys_.back();
    keys_.pop_back();
  }

  void Resize() {
    if (keys_.empty()) return;
    const ContainerKey key = OneOf(keys_);
    const CpuSet held = node_.PlacementOf(key).exclusive;
    const std::map<ContainerKey, std::string> before = All();
    if (!node_.Resize(key, Request()).ok()) {
      EXPECT_EQ(All(), before);
    }
    const CpuSet& now = node_.PlacementOf(key).exclusive;
    if (now.size() >= held.size()) {
      EXPECT_TRUE(held.IsSubsetOf(now)) << held.ToString() << " became " << now.ToString();
    }
  }

  // A new attempt of a container, which asks for the same.
  void Again() {
    if (keys_.empty()) return;
    ContainerKey& key = OneOf(keys_);
    const Container former = node_.snapshot().At(key);
    const Pod pod = node_.snapshot().PodOf(key);
    node_.snapshot().Remove(key);
    const StatusOr<ContainerKey> again =
        node_.Create("c", pod.qos, former.requirements.cpu_request.value, &former);
    const int64_t whole = former.requirements.cpu_request.Whole();
    if (former.placement.exclusive.size() == whole) {
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(node_.PlacementOf(*again).exclusive, former.placement.exclusive);
    }
    if (again.ok()) {
      key = *again;
      return;
    }
    // The container had fewer CPUs than requested.
    node_.Remove(key);
    key = keys_.back();
    keys_.pop_back();
  }

  // A restart with only the runtime's knowledge.
  void Forget() {
    const std::map<ContainerKey, std::string> before = Cpusets();
    node_.ForgetDecisions();
    node_.Reconcile();
    EXPECT_EQ(Cpusets(), before) << "a restart moves nobody";
  }

  const Alignment alignment_;
  const CpuSet ordinary_;
  PolicyNode node_;
  const AlignedPlaces places_;
  std::vector<ContainerKey> keys_;
  int granted_ = 0;
  int refused_ = 0;
};

void LiveAligned(const PolicyFactory& factory) {
  const uint64_t seed = SeedOr(1);
  SCOPED_TRACE(Repeat(seed));
  int granted = 0;
  int refused = 0;
  for (const auto& [name, machine] : AllMachines()) {
    for (const Alignment alignment : {Alignment::kNuma, Alignment::kL3, Alignment::kPackage}) {
      SCOPED_TRACE(fmt::format("{}, {}", name, ToString(alignment)));
      AlignedLife life(factory, machine, alignment, seed);
      for (int step = 0; step < kAlignedSteps; ++step) {
        life.Step();
        life.CheckAligned();
        ASSERT_FALSE(testing::Test::HasFailure()) << "step " << step;
      }
      granted += life.granted();
      refused += life.refused();
    }
  }
  EXPECT_GT(granted, 200);
  EXPECT_GT(refused, 100);
}

TEST(AlignmentPropertyTest, StaticSplitsNoContainer) {
  LiveAligned(StaticPolicyFactory());
}

TEST(AlignmentPropertyTest, StaticPlusSplitsNoContainer) {
  LiveAligned(StaticPlusPolicyFactory());
}

TEST(AlignmentPropertyTest, TopologyAwareSplitsNoContainer) {
  LiveAligned(TopologyAwarePolicyFactory());
}

// 8 CPUs on two nodes, 0-3 and 4-7, of which 0 is reserved.
TEST(AlignmentPropertyTest, ARefusalSaysWhatEachPlaceLacks) {
  for (const PolicyFactory& factory : AligningPolicies()) {
    SCOPED_TRACE(factory.name);
    PolicyNode node(factory, S2NoHt(), "0", "{Alignment: numa}");
    ASSERT_TRUE(node.Create("a", kGuaranteed, 2000).ok());
    ASSERT_TRUE(node.Create("b", kGuaranteed, 2000).ok());
    const Status refusal = node.Create("c", kGuaranteed, 3000).status();
    EXPECT_EQ(refusal.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(Message(refusal)),
                HasSubstr("needs 3 exclusive CPUs in one NUMA node (NUMA node 0: 1 of 3 CPUs free; "
                          "NUMA node 1: 2 of 3 CPUs free)"));
    const Status never = node.Create("d", kGuaranteed, 5000).status();
    EXPECT_EQ(never.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(
        Message(never),
        "needs 5 exclusive CPUs in one NUMA node, but this node can grant no more than 4 there");
    EXPECT_TRUE(node.Create("shared", kBurstable, 700).ok());
  }
}

TEST(AlignmentPropertyTest, AnnotationsComeBeforeTheOption) {
  for (const PolicyFactory& factory : AligningPolicies()) {
    SCOPED_TRACE(factory.name);
    const auto create = [&](std::string_view section, const StringMap& annotations) {
      PolicyNode node(factory, S2NoHt(), "0", section);
      const ContainerKey key = node.snapshot().Add("main", kGuaranteed, 5000).key;
      node.snapshot().PodOf(key).annotations = annotations;
      return node.Place(key).status();
    };
    EXPECT_TRUE(create("{}", {}).ok());
    EXPECT_FALSE(create("{Alignment: numa}", {}).ok());
    EXPECT_FALSE(create("{}", {{"alignment.resource-policy.nri.io", "numa"}}).ok());
    EXPECT_FALSE(
        create("{}", {{"alignment.cri-resource-manager.intel.com/container.main", "l3"}}).ok());
    EXPECT_TRUE(create("{}", {{"alignment.resource-policy.nri.io/container.side", "numa"}}).ok());
    EXPECT_TRUE(
        create("{Alignment: numa}", {{"alignment.resource-policy.nri.io/pod", "prefer"}}).ok());
    EXPECT_TRUE(create("{}", {{"alignment.resource-policy.nri.io/pod", "core"}}).ok())
        << "a typing error prevents no pod";
  }
}

TEST(AlignmentPropertyTest, AContainerThatIsSplitStaysWhereItIs) {
  for (const PolicyFactory& factory : AligningPolicies()) {
    SCOPED_TRACE(factory.name);
    PolicyNode node(factory, S2NoHt(), "0", "{}");
    const ContainerKey key = *node.Create("split", kGuaranteed, 5000);
    const CpuSet cpus = node.PlacementOf(key).exclusive;
    node.ChangeSection("{Alignment: numa}");
    EXPECT_THAT(node.Reconcile().changes, IsEmpty());
    node.ForgetDecisions();
    node.Reconcile();
    EXPECT_EQ(node.PlacementOf(key).exclusive, cpus);
    node.Rebalance();
    EXPECT_EQ(node.PlacementOf(key).exclusive, cpus);
    const Status more = node.Resize(key, 6000);
    EXPECT_FALSE(more.ok());
    EXPECT_EQ(node.PlacementOf(key).exclusive, cpus);
    const Container former = node.snapshot().At(key);
    node.snapshot().Remove(key);
    const ContainerKey again = *node.Create("split", kGuaranteed, 5000, &former);
    EXPECT_EQ(node.PlacementOf(again).exclusive, cpus) << "a new attempt has them too";
    ASSERT_TRUE(node.Resize(again, 3000).ok());
    const CpuSet rest = node.PlacementOf(again).exclusive;
    EXPECT_TRUE(rest.IsSubsetOf(cpus));
    EXPECT_TRUE(AlignedPlaces(node.machine()).IsAligned(Alignment::kNuma, rest));
  }
}

TEST(AlignmentPropertyTest, AGrowingContainerStaysInItsPlace) {
  for (const PolicyFactory& factory : AligningPolicies()) {
    SCOPED_TRACE(factory.name);
    PolicyNode node(factory, M80(), "0", "{Alignment: numa}");
    const ContainerKey key = *node.Create("grows", kGuaranteed, 10'000);
    ASSERT_TRUE(node.Resize(key, 15'000).ok());
    const NodeSet nodes = node.machine().NodesOf(node.PlacementOf(key).exclusive);
    EXPECT_EQ(nodes.size(), 1);
    const Status refusal = node.Resize(key, 25'000);
    EXPECT_EQ(refusal.code(), StatusCode::kInvalidArgument);
    const int room = nodes.Contains(0) ? 19 : 20;
    ASSERT_TRUE(node.Resize(key, int64_t{1000} * (room - 1)).ok());
    ASSERT_TRUE(node.Create("one", kGuaranteed, 1000).ok());
    EXPECT_EQ(node.PlacementOf(key).exclusive.size(), room - 1);
  }
}

}  // namespace
}  // namespace resmgr::test
