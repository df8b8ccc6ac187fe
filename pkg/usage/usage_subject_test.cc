// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/usage_subject.h"

#include <memory>

#include <gtest/gtest.h>

#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

// The container's memory counts on a node and may lie elsewhere, so none of it is remote.
TEST(UsageSubjectTest, ContainersWithoutDecidedNodesHaveNone) {
  test::TestNode node(test::S1Ht(), [](const Machine& machine) {
    auto policy = std::make_unique<test::FirstFitPolicy>(machine);
    policy->spoil = [](Plan& plan) {
      for (auto& change : plan.changes) {
        change.placement.mems.reset();
        change.placement.counted_mems = {0};
      }
    };
    return policy;
  });
  node.Run("web", QosClass::kGuaranteed, 1000);
  const auto subjects = UsageSubjects(&node.manager());
  ASSERT_EQ(subjects.size(), 1U);
  EXPECT_EQ(subjects[0].FullName(), "ns/web/web");
  EXPECT_TRUE(subjects[0].mems.empty());
}

}  // namespace
}  // namespace resmgr
