// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "pkg/nri/host/stage/plugin_updates.h"
#include "pkg/nri/testing/messages.h"
#include "test/support/status_matchers.h"

namespace resmgr::nri {
namespace {

using google::protobuf::util::MessageDifferencer;
using resmgr::test::Fails;
using resmgr::test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class UpdateShortfallsTest : public testing::Test {
 protected:
  api::LinuxResources resources_ = Make<api::LinuxResources>(R"(
    memory { limit { value: 5 } reservation {} kernel {} kernel_tcp {} swappiness {}
             disable_oom_killer {} use_hierarchy {} }
    cpu { shares { value: 7 } realtime_runtime {} realtime_period {} }
    pids { limit: 1 } blockio_class {} rdt_class {} devices { allow: true })");
  RuntimeTraits cgroup_v1_{.cgroup_v2 = false};
};

TEST_F(UpdateShortfallsTest, OnlyWhatTheCriHasIsLeft) {
  const auto left_out = LeaveOutShortfalls(cgroup_v1_, {}, resources_);

  ASSERT_THAT(left_out, IsOk());
  EXPECT_EQ(left_out->size(), 12U);
  EXPECT_THAT(ShortfallsOf(resources_, cgroup_v1_, true), IsEmpty());
  EXPECT_TRUE(MessageDifferencer::Equals(resources_,
                                         Make<api::LinuxResources>("memory { limit { value: 5 } } "
                                                                   "cpu { shares { value: 7 } }")))
      << resources_.DebugString();
}

TEST_F(UpdateShortfallsTest, EachFieldIsNamed) {
  auto resources = Make<api::LinuxResources>("blockio_class { value: 'gold' }");

  EXPECT_THAT(LeaveOutShortfalls({}, {}, resources).value(),
              ElementsAre("an NRI plugin wants to set BlockioClass: the CRI cannot change it of a "
                          "container that exists"));
}

TEST_F(UpdateShortfallsTest, AMemoryLimitCannotBeLifted) {
  auto resources = Make<api::LinuxResources>(
      "memory { limit { value: -1 } swap { value: -1 } } cpu { quota { value: -1 } }");

  EXPECT_EQ(LeaveOutShortfalls({}, {}, resources)->size(), 2U);
  EXPECT_FALSE(resources.memory().has_limit());
  EXPECT_FALSE(resources.memory().has_swap());
  EXPECT_EQ(resources.cpu().quota().value(), -1);
}

TEST_F(UpdateShortfallsTest, ARefusedFieldLeavesTheResourcesAsTheyAre) {
  UnsupportedPolicy policy;
  policy.Set(api::FIELD_RDT_CLASS, FailurePolicy::kFail);
  const api::LinuxResources before = resources_;

  EXPECT_THAT(LeaveOutShortfalls({}, policy, resources_).status(),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("RdtClass")));
  EXPECT_TRUE(MessageDifferencer::Equals(resources_, before));
}

}  // namespace
}  // namespace resmgr::nri
