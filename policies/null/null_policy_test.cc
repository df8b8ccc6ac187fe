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
  const Machine machine = test::S1Ht();
  NullPolicy policy(machine);
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
  Container& asked = snapshot.Add("asked", QosClass::kGuaranteed, 2000);
  asked.placement = placed.placement;
  asked.requested.cpuset_cpus = "6";
  const Machine machine = test::S1Ht();
  NullPolicy policy(machine);
  const StatusOr<Plan> plan = policy.Reconcile(snapshot);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->Find(found.key), nullptr) << "it stays where it was found";
  ASSERT_NE(plan->Find(placed.key), nullptr);
  EXPECT_EQ(plan->Find(placed.key)->cpus, machine.online());
  EXPECT_TRUE(plan->Find(placed.key)->exclusive.empty());
  EXPECT_FALSE(plan->Find(placed.key)->mems.has_value());
  ASSERT_NE(plan->Find(asked.key), nullptr);
  EXPECT_EQ(plan->Find(asked.key)->cpus, CpuSet{6});

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
