// SPDX-License-Identifier: Apache-2.0
// Containers whose handler of runtimeClasses has Pinning sandbox or none, under each policy.
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/policy_node.h"

namespace resmgr {
namespace {

using testing::HasSubstr;

RuntimesConfig KataAndGvisor() {
  RuntimesConfig runtimes;
  runtimes.classes["kata"].pinning = Pinning::kSandbox;
  runtimes.classes["runsc"].pinning = Pinning::kNone;
  runtimes.classes["runc"].pinning = Pinning::kContainer;
  return runtimes;
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
          node_.CreateIn(PodOf(handler, name, QosClass::kGuaranteed), name, milli_cpu);
      ASSERT_TRUE(made.ok()) << made.status();
      alive.emplace_back(*made, handler);
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

INSTANTIATE_TEST_SUITE_P(Policies, PinningTest,
                         testing::Values(StaticPolicyFactory(), StaticPlusPolicyFactory(),
                                         TopologyAwarePolicyFactory()),
                         [](const auto& policy) {
                           std::string name(policy.param.name);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace resmgr
