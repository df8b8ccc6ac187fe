// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/policy_node.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;
using testing::HasSubstr;

using enum QosClass;

// Those that grant exclusive CPUs.
const auto kPinningPolicies =
    testing::Values(StaticPolicyFactory(), StaticPlusPolicyFactory(), TopologyAwarePolicyFactory());

std::string NameOfPolicy(const testing::TestParamInfo<PolicyFactory>& policy) {
  std::string name(policy.param.name);
  std::erase(name, '-');
  return name;
}

Pod PodOf(std::string_view handler, std::string_view name, QosClass qos) {
  Pod pod;
  pod.id = PodSandboxId(std::string(name));
  pod.uid = PodUid(std::string(name));
  pod.name = name;
  pod.namespace_name = "ns";
  pod.qos = qos;
  pod.runtime_handler = handler;
  return pod;
}

// The overheads that kubelets promised pods beside their containers, under each policy that grants
// exclusive CPUs.
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
    Pod pod = PodOf("", name, qos);
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
  const auto db = Must(node_.Create("db", kGuaranteed, 5000));
  EXPECT_EQ(node_.PlacementOf(db).exclusive.size(), 5);
  EXPECT_EQ(node_.Resize(db, 6000).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(node_.PlacementOf(db).exclusive.size(), 5);
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
  const auto again = Must(node_.Create("db", kGuaranteed, 4000, &former));
  EXPECT_EQ(node_.PlacementOf(again).exclusive, former.placement.exclusive);
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

INSTANTIATE_TEST_SUITE_P(Policies, PodOverheadTest, kPinningPolicies, NameOfPolicy);

// Containers whose handler of runtimeClasses has Pinning sandbox or none, under each policy.

RuntimesConfig KataAndGvisor() {
  RuntimesConfig runtimes;
  runtimes.classes["kata"].pinning = Pinning::kSandbox;
  runtimes.classes["runsc"].pinning = Pinning::kNone;
  runtimes.classes["runc"].pinning = Pinning::kContainer;
  return runtimes;
}

class PinningTest : public testing::TestWithParam<PolicyFactory> {
 protected:
  test::PolicyNode node_{GetParam(), test::S2Ht(), "0", "", KataAndGvisor()};

  ContainerKey Make(std::string_view handler, std::string_view name, int64_t milli_cpu) {
    const auto made = node_.CreateIn(PodOf(handler, name, QosClass::kGuaranteed), name, milli_cpu);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.value_or(ContainerKey{});
  }
  void ExpectUnbound(ContainerKey key) {
    const Placement& placement = node_.PlacementOf(key);
    EXPECT_EQ(placement.values(), ResourceValues()) << "nothing is sent to the runtime";
    EXPECT_TRUE(placement.exclusive.empty());
  }
  MilliCpu SharedRequest() {
    MilliCpu sum{};
    for (const Zone& zone : node_.policy().Zones(node_.snapshot()))
      sum = sum + zone.shared_request;
    return sum;
  }
};

TEST_P(PinningTest, R01NoContainerCpusetForKataAndRuncIsPinned) {
  const ContainerKey kata = Make("kata", "kata", 2000);
  const ContainerKey runsc = Make("runsc", "runsc", 1000);
  const ContainerKey runc = Make("runc", "runc", 2000);
  const ContainerKey unnamed = Make("", "unnamed", 1000);
  ExpectUnbound(kata);
  ExpectUnbound(runsc);
  EXPECT_THAT(node_.PlacementOf(kata).reason, HasSubstr("handler kata has Pinning sandbox"));
  EXPECT_THAT(node_.PlacementOf(runsc).reason, HasSubstr("handler runsc has Pinning none"));
  EXPECT_EQ(node_.PlacementOf(runc).exclusive.size(), 2);
  EXPECT_EQ(node_.PlacementOf(unnamed).exclusive.size(), 1);
  EXPECT_EQ(SharedRequest(), MilliCpu{3000}) << "what they ask for weighs on the shared CPUs";
}

TEST_P(PinningTest, AnUpdateARestartAndARebalanceBindNothing) {
  const ContainerKey kata = Make("kata", "kata", 2000);
  const ContainerKey runc = Make("runc", "runc", 2000);
  const CpuSet exclusive = node_.PlacementOf(runc).exclusive;
  EXPECT_TRUE(node_.Resize(kata, 3000).ok());
  ExpectUnbound(kata);
  EXPECT_EQ(SharedRequest(), MilliCpu{3000});
  node_.Rebalance();
  ExpectUnbound(kata);
  node_.RestartPolicy();
  EXPECT_TRUE(node_.Reconcile().empty());
  ExpectUnbound(kata);
  EXPECT_EQ(node_.PlacementOf(runc).exclusive, exclusive);
  // If the runtime reports all CPUs for it, it takes none from others.
  node_.ForgetDecisions();
  node_.snapshot().At(kata).placement.cpus = node_.machine().online();
  node_.Reconcile();
  ExpectUnbound(kata);
  EXPECT_EQ(node_.PlacementOf(runc).exclusive, exclusive);
}

TEST_P(PinningTest, RandomLivesBindNoneAndLeaveNothing) {
  const MilliCpu before = SharedRequest();
  std::mt19937 random(7);  // NOLINT(cert-msc32-c,cert-msc51-cpp)
  const std::vector<std::string> handlers = {"kata", "runsc", "runc", ""};
  std::vector<std::pair<ContainerKey, std::string>> alive;
  for (int step = 0; step < 400; ++step) {
    const int64_t milli_cpu = static_cast<int64_t>(random() % 3) * 500 + 500;
    const size_t at = alive.empty() ? 0 : random() % alive.size();
    if (alive.size() < 6 && random() % 2 == 0) {
      const std::string& handler = handlers[random() % handlers.size()];
      const std::string name = fmt::format("pod{}", step);
      const auto made =
          Must(node_.CreateIn(PodOf(handler, name, QosClass::kGuaranteed), name, milli_cpu));
      alive.emplace_back(made, handler);
    } else if (!alive.empty() && random() % 3 == 0) {
      ASSERT_TRUE(node_.Resize(alive[at].first, milli_cpu).ok());
    } else if (!alive.empty()) {
      node_.Remove(alive[at].first);
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (random() % 8 == 0) node_.Rebalance();
    for (const auto& [key, handler] : alive) {
      const bool unbound = handler == "kata" || handler == "runsc";
      EXPECT_EQ(node_.PlacementOf(key).cpus.has_value(), !unbound);
      if (unbound) ExpectUnbound(key);
    }
  }
  for (const auto& [key, handler] : alive)
    node_.Remove(key);
  EXPECT_EQ(SharedRequest(), before);
}

INSTANTIATE_TEST_SUITE_P(Policies, PinningTest, kPinningPolicies, NameOfPolicy);

}  // namespace
}  // namespace resmgr
