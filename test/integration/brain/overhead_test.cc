// SPDX-License-Identifier: Apache-2.0
// The overheads that kubelets promised pods beside their containers, under each policy that grants
// exclusive CPUs.
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/policy_node.h"

namespace resmgr {
namespace {

using testing::HasSubstr;

using enum QosClass;

class PodOverheadTest : public testing::TestWithParam<PolicyFactory> {
 protected:
  // Seven CPUs can be granted.
  test::PolicyNode node_{GetParam(), test::S1Ht(), "0", ""};

  void SetOverhead(ContainerKey key, int64_t milli_cpu) {
    node_.snapshot().PodOf(key).overhead.cpu_shares = SharesFromMilliCpu({milli_cpu});
  }
  // Creates a container in a pod with that overhead.
  StatusOr<ContainerKey> Make(std::string_view name, QosClass qos, int64_t milli_cpu,
                              int64_t overhead) {
    Pod pod;
    pod.id = PodSandboxId(std::string(name));
    pod.uid = PodUid(std::string(name));
    pod.name = name;
    pod.namespace_name = "ns";
    pod.qos = qos;
    pod.overhead.cpu_shares = SharesFromMilliCpu({overhead});
    return node_.CreateIn(pod, name, milli_cpu);
  }
  Zone DebitedZone() { return node_.policy().Zones(node_.snapshot()).front(); }
};

TEST_P(PodOverheadTest, ExclusiveCpusThatOverheadNeedsAreRefusedWithTheShortage) {
  ASSERT_TRUE(Make("vm", kBurstable, 100, 1500).ok());
  const Status refusal = node_.Create("db", kGuaranteed, 6000).status();
  EXPECT_EQ(refusal.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(refusal)), HasSubstr("needs 6 exclusive CPUs"));
  EXPECT_THAT(std::string(Message(refusal)), HasSubstr("1500m are overhead of pods"));
  const auto db = node_.Create("db", kGuaranteed, 5000);
  ASSERT_TRUE(db.ok()) << db.status();
  EXPECT_EQ(node_.PlacementOf(*db).exclusive.size(), 5);
  EXPECT_EQ(node_.Resize(*db, 6000).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(node_.PlacementOf(*db).exclusive.size(), 5);
}

TEST_P(PodOverheadTest, OnlyGrowthIsRefused) {
  const auto vm = Make("vm", kBurstable, 100, 250);
  const auto db = node_.Create("db", kGuaranteed, 5000);
  ASSERT_TRUE(vm.ok() && db.ok());
  SetOverhead(*vm, 6000);
  EXPECT_EQ(node_.Create("more", kGuaranteed, 1000).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_TRUE(node_.Create("shared", kBurstable, 100).ok());
  node_.RestartPolicy();
  EXPECT_TRUE(node_.Reconcile().empty()) << "what runs keeps its CPUs";
  EXPECT_EQ(node_.PlacementOf(*db).exclusive.size(), 5);
  EXPECT_TRUE(node_.Resize(*db, 4000).ok());
  EXPECT_EQ(node_.PlacementOf(*db).exclusive.size(), 4);
  const Container former = node_.snapshot().At(*db);
  node_.snapshot().Remove(*db);
  const auto again = node_.Create("db", kGuaranteed, 4000, &former);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(node_.PlacementOf(*again).exclusive, former.placement.exclusive);
}

TEST_P(PodOverheadTest, PoolsShowItAndWhatIsLeft) {
  const std::optional<MilliCpu> free = DebitedZone().free;
  const auto vm = Make("vm", kBurstable, 0, 250);
  ASSERT_TRUE(vm.ok() && free);
  EXPECT_EQ(DebitedZone().overhead.cpu, MilliCpu{250});
  EXPECT_EQ(DebitedZone().free, *free - MilliCpu{250});
  node_.Remove(*vm);
  EXPECT_TRUE(DebitedZone().overhead.empty());
  EXPECT_EQ(DebitedZone().free, free);
}

// The pods obey the scheduler's rule: requests and overheads together are at most the unreserved
// CPUs.
TEST_P(PodOverheadTest, RandomLivesRefuseNoPodThatFitsAndReturnToZero) {
  const Zone before = DebitedZone();
  std::mt19937 random(11);                // NOLINT(cert-msc32-c,cert-msc51-cpp)
  std::map<ContainerKey, int64_t> alive;  // with all that the scheduler counts
  int64_t counted = 0;
  for (int step = 0; step < 2000; ++step) {
    if (random() % 3 != 0) {
      const bool whole = random() % 2 == 0;
      const int64_t request = static_cast<int64_t>(random() % 4 + 1) * (whole ? 1000 : 170);
      const int64_t overhead = static_cast<int64_t>(random() % 5) * 130;
      const bool fits = counted + request + overhead <= 7000;
      const auto made =
          Make(fmt::format("pod{}", step), whole ? kGuaranteed : kBurstable, request, overhead);
      ASSERT_TRUE(made.ok() || !fits) << made.status();
      if (!made.ok()) continue;
      counted += alive[*made] = request + overhead;
    } else if (!alive.empty()) {
      const auto ends = std::next(alive.begin(), static_cast<int64_t>(random() % alive.size()));
      counted -= ends->second;
      node_.Remove(ends->first);
      alive.erase(ends);
    }
  }
  for (const auto& [key, amount] : alive)
    node_.Remove(key);
  EXPECT_TRUE(DebitedZone().overhead.empty());
  EXPECT_EQ(DebitedZone().free, before.free);
  EXPECT_EQ(DebitedZone().shared, before.shared);
}

INSTANTIATE_TEST_SUITE_P(Policies, PodOverheadTest,
                         testing::Values(StaticPolicyFactory(), StaticPlusPolicyFactory(),
                                         TopologyAwarePolicyFactory()),
                         [](const auto& policy) {
                           std::string name(policy.param.name);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace resmgr
