// SPDX-License-Identifier: Apache-2.0
// Requests above 256 CPUs, which CPU shares do not distinguish, through a restart without saved
// state.
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/policy/registry.h"
#include "pkg/resmgr/testing/test_node.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/default_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;

// 1024 CPUs.
class Node : public TestNode {
 public:
  explicit Node(const PolicyFactory& factory)
      : TestNode(
            MakeMachine({.packages = 8, .cores = 64, .threads = 2}),
            [factory](const Machine& machine) { return MakeDefaultPolicy(factory, machine); }) {}

  const Placement& At(const ContainerId& id) const { return Known(id)->placement; }
  int64_t QuotaInForce(const ContainerId& id) {
    return runtime.Find(id)->resources.cpu_quota.value_or(0);
  }
  void ResizeTo(const ContainerId& id, int64_t milli_cpu) {
    const LinuxResources changes = Resources(milli_cpu);
    const StatusOr<Admission> admission = manager().AdmitUpdate(id, changes);
    ASSERT_TRUE(admission.ok()) << admission.status();
    ResourceValues carried = admission->adjustment;
    if (!carried.cpu_shares) carried.cpu_shares = changes.cpu_shares;
    if (!carried.cpu_quota) carried.cpu_quota = changes.cpu_quota;
    runtime.Apply(id, carried);
    manager().UpdateSucceeded(*admission);
  }
};

class LargeRequestsTest : public testing::TestWithParam<PolicyFactory> {};

TEST_P(LargeRequestsTest, ARestartMovesNoContainer) {
  Node node(GetParam());
  const ContainerId large = node.Run("large", QosClass::kGuaranteed, 300'000);
  const ContainerId limit = node.Run("limit", QosClass::kGuaranteed, 256'000);
  const ContainerId below = node.Run("below", QosClass::kGuaranteed, 255'000);
  EXPECT_EQ(node.At(large).exclusive.size(), 300);
  EXPECT_EQ(node.QuotaInForce(large), 30'000'000) << "nothing else tells how many they are";
  EXPECT_EQ(node.QuotaInForce(limit), 25'600'000) << "that they are no more";
  EXPECT_EQ(node.QuotaInForce(below), kNoQuota);
  for (const ContainerId& id : {large, limit, below}) {
    const std::string before = node.Placed(id);
    node.Restart();
    EXPECT_EQ(node.Placed(id), before) << id.value();
    EXPECT_EQ(node.Exclusive(id), before) << id.value();
  }
  EXPECT_TRUE(node.runtime.history.empty()) << node.runtime.history.front();
}

TEST_P(LargeRequestsTest, AResizeThatOnlyTheQuotaTellsIsOne) {
  Node node(GetParam());
  const ContainerId large = node.Run("large", QosClass::kGuaranteed, 300'000);
  for (const int64_t cpus : {320, 257, 200, 310}) {
    node.ResizeTo(large, 1000 * cpus);
    EXPECT_EQ(node.At(large).exclusive.size(), cpus);
    EXPECT_EQ(node.QuotaInForce(large), cpus < 256 ? kNoQuota : 100'000 * cpus);
    const std::string before = node.Placed(large);
    node.Restart();
    EXPECT_EQ(node.Exclusive(large), before) << cpus;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, LargeRequestsTest,
                         testing::Values(StaticPolicyFactory(), StaticPlusPolicyFactory(),
                                         TopologyAwarePolicyFactory()),
                         [](const auto& param_info) {
                           std::string name(param_info.param.name);
                           std::erase(name, '-');
                           return name;
                         });

// Its request may be its limit or less: it gets CPUs of its own for the certain part, and the
// shared CPUs for the rest.
TEST(LargeBurstableRequestsTest, HaveSharedCpusForWhatTheSharesDoNotTell) {
  Node node(StaticPlusPolicyFactory());
  const ContainerId large = node.Run("large", QosClass::kBurstable, 300'000);
  EXPECT_EQ(node.At(large).exclusive.size(), 256);
  EXPECT_EQ(node.At(large).cpus->size(), 1023);
  EXPECT_EQ(node.QuotaInForce(large), 30'000'000);
  EXPECT_THAT(node.At(large).reason,
              HasSubstr("CPU request of 256000m, the most that CPU shares tell"));
  const ContainerId exact = node.Run("exact", QosClass::kBurstable, 256'000);
  EXPECT_EQ(node.At(exact).cpus->size(), 256) << "its limit allows no more";
  const std::string before = node.Placed(large);
  node.Restart();
  EXPECT_EQ(node.Placed(large), before);
  EXPECT_EQ(node.At(large).exclusive.size(), 256);
}

}  // namespace
}  // namespace resmgr::test
