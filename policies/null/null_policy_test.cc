// SPDX-License-Identifier: Apache-2.0
#include "policies/null/null_policy.h"

#include <gtest/gtest.h>

#include "pkg/config/config_node.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

TEST(NullPolicyTest, PlacesNoContainer) {
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

TEST(NullPolicyTest, LetsGoWhatAnotherPolicyPlaced) {
  test::TestSnapshot snapshot;
  Container& found = snapshot.Add("found", QosClass::kBurstable, 100);
  found.placement.cpus = CpuSet{4};
  Container& placed = snapshot.Add("placed", QosClass::kGuaranteed, 2000);
  placed.placement.cpus = CpuSet{2, 3};
  placed.placement.exclusive = CpuSet{2, 3};
  placed.placement.pool = "exclusive";
  Container& bound = snapshot.Add("bound", QosClass::kGuaranteed, 2000);
  bound.placement.cpus = CpuSet{6};
  bound.cpus_bound = true;
  NullPolicy policy;
  const StatusOr<Plan> plan = policy.Reconcile(snapshot);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->Find(found.key), nullptr) << "it stays where it was found";
  ASSERT_NE(plan->Find(placed.key), nullptr);
  EXPECT_TRUE(plan->Find(placed.key)->values().empty());
  EXPECT_TRUE(plan->Find(placed.key)->exclusive.empty());
  ASSERT_NE(plan->Find(bound.key), nullptr) << "as after a restart, which knows no pool";
  EXPECT_FALSE(plan->Find(bound.key)->cpus.has_value());

  snapshot.Apply(*plan);
  const StatusOr<Plan> again = policy.Reconcile(snapshot);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->changes.empty());
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
