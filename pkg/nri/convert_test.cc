// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/convert.h"

#include <gtest/gtest.h>

namespace resmgr::nri {
namespace {

TEST(ConvertTest, SettingsOfProcessesAreFieldsOfACreation) {
  Adjustment adjustment;
  adjustment.Wide().scheduler = SchedulerSettings{.policy = SchedulerSettings::Policy::kDeadline,
                                                  .flags = {SchedulerSettings::Flag::kResetOnFork},
                                                  .runtime_ns = 10'000'000,
                                                  .deadline_ns = 20'000'000,
                                                  .period_ns = 30'000'000};
  adjustment.Wide().io_priority =
      IoPriority{.io_class = IoPriority::Class::kBestEffort, .priority = 6};
  adjustment.Wide().memory_policy =
      MemoryPolicySettings{.mode = MemoryPolicySettings::Mode::kInterleave,
                           .nodes = "0-1",
                           .flags = {MemoryPolicySettings::Flag::kStaticNodes}};
  api::ContainerAdjustment out;
  AddTo(adjustment, {0, 12, 0}, out);
  EXPECT_EQ(out.linux().scheduler().policy(), api::SCHEDULER_DEADLINE);
  EXPECT_EQ(out.linux().scheduler().runtime(), 10'000'000U) << "nanoseconds";
  EXPECT_EQ(out.linux().scheduler().deadline(), 20'000'000U);
  EXPECT_EQ(out.linux().scheduler().period(), 30'000'000U);
  ASSERT_EQ(out.linux().scheduler().flags_size(), 1);
  EXPECT_EQ(out.linux().scheduler().flags(0), api::SCHEDULER_FLAG_RESET_ON_FORK);
  EXPECT_EQ(out.linux().io_priority().class_(), api::IO_PRIORITY_BE);
  EXPECT_EQ(out.linux().io_priority().priority(), 6);
  EXPECT_EQ(out.linux().memory_policy().mode(), api::MEMORY_POLICY_INTERLEAVE);
  EXPECT_EQ(out.linux().memory_policy().nodes(), "0-1");
  ASSERT_EQ(out.linux().memory_policy().flags_size(), 1);
  EXPECT_FALSE(out.linux().has_resources());
  for (const Field field : {Field::kScheduler, Field::kIoPriority, Field::kMemoryPolicy}) {
    EXPECT_TRUE(NriHas(Operation::kCreateContainer, field)) << ToString(field);
    EXPECT_FALSE(NriHas(Operation::kUpdateContainerResources, field)) << ToString(field);
  }
}

TEST(ConvertTest, AClassOfRdtIsAGroupWhereTheHostKnowsThem) {
  Adjustment adjustment;
  adjustment.Wide().rdt_class = "cri-resmgr.gold";
  api::ContainerAdjustment old;
  AddTo(adjustment, {0, 10, 0}, old);
  EXPECT_EQ(old.linux().resources().rdt_class().value(), "cri-resmgr.gold");
  EXPECT_FALSE(old.linux().has_rdt());
  api::ContainerAdjustment out;
  AddTo(adjustment, {0, 11, 0}, out);
  EXPECT_EQ(out.linux().rdt().clos_id().value(), "cri-resmgr.gold");
  EXPECT_FALSE(out.linux().rdt().has_schemata()) << "the group has its masks";
  EXPECT_FALSE(out.linux().has_resources());
}

}  // namespace
}  // namespace resmgr::nri
