// SPDX-License-Identifier: Apache-2.0
#include "policies/null/null_policy.h"

#include <gtest/gtest.h>

#include "pkg/config/config_node.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

TEST(NullPolicyTest, PlacesNobody) {
  test::TestSnapshot snapshot;
  const Container& container = snapshot.Add("web", QosClass::kGuaranteed, 2000);
  NullPolicy policy;
  EXPECT_EQ(policy.name(), "null");
  const StatusOr<Plan> plan =
      policy.Allocate(snapshot, snapshot.PodOf(container.key), container, nullptr);
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->changes.empty());
  EXPECT_TRUE(policy.Zones(snapshot).empty());
}

TEST(NullPolicyTest, TakesBackWhatAnotherPolicyPlaced) {
  test::TestSnapshot snapshot;
  snapshot.Add("left-alone", QosClass::kBurstable, 100);
  Container& placed = snapshot.Add("placed", QosClass::kGuaranteed, 2000);
  placed.placement.cpus = CpuSet{2, 3};
  placed.placement.exclusive = CpuSet{2, 3};
  NullPolicy policy;
  const StatusOr<Plan> plan = policy.Reconcile(snapshot);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->changes.size(), 1u);
  EXPECT_EQ(plan->changes[0].key, placed.key);
  EXPECT_FALSE(plan->changes[0].placement.cpus.has_value());
  EXPECT_TRUE(plan->changes[0].placement.exclusive.empty());
}

TEST(NullPolicyTest, HasNoOptions) {
  ConfigNode section;
  section.kind = ConfigNode::Kind::kMap;
  section.entries.push_back({"surprise", 3, ConfigNode()});
  const Machine machine = test::S1Ht();
  const PolicyFactory factory = NullPolicyFactory();
  EXPECT_TRUE(factory.create({machine, {}, {}, nullptr}).ok());
  EXPECT_EQ(factory.create({machine, {}, {}, &section}).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace resmgr
