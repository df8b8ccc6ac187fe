// SPDX-License-Identifier: Apache-2.0
// Updates that ask for other CPUs than the policy's.
#include "pkg/resmgr/cpuset_overrides.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/captured_log.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::CpuList;
using test::TestNode;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

using enum QosClass;

class CpusetOverridesTest : public testing::Test {
 protected:
  ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.metrics = &metrics_;
    options.overrides_warned = &warned_;
    return options;
  }
  std::string Counts() const {
    return prometheus::TextSerializer().Serialize(metrics_.collectable()->Collect());
  }
  static auto Overridden(int times) {
    return HasSubstr("\ncri_resmgr_overridden_cpusets_total " + std::to_string(times) + "\n");
  }

  // An update with this cpuset, that the runtime takes; returns what it carried.
  std::string Update(const ContainerId& id, const std::string& cpus,
                     LinuxResources resources = {}) {
    resources.cpuset_cpus = cpus;
    const StatusOr<Admission> admission = node_.manager().AdmitUpdate(id, resources);
    EXPECT_TRUE(admission.ok()) << admission.status();
    if (!admission.ok()) return "";
    node_.runtime.Apply(id, admission->adjustment);
    node_.manager().UpdateSucceeded(*admission);
    node_.runtime.AnswerAll();
    return CpuList(admission->adjustment);
  }

  bool warned_ = false;
  test::CapturedLog warnings_{"another program places containers"};
  Metrics metrics_{"1", {}};
  TestNode node_{test::S1Ht(),  // CPUs 0-7
                 test::FirstFit, Options()};
};

TEST_F(CpusetOverridesTest, AreCountedEachAndReportedOnce) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  EXPECT_EQ(Update(app, "4-5"), "1-2");
  EXPECT_EQ(Update(shared, "0-3,6-7"), "0,3-7");
  ASSERT_EQ(warnings_.lines.size(), 1u);
  EXPECT_THAT(warnings_.lines[0],
              AllOf(HasSubstr("asks for CPUs 4-5 for container ns/app/app, which gets 1-2"),
                    HasSubstr("set cpuManagerPolicy to none")));
  EXPECT_THAT(Counts(), Overridden(2));
}

TEST_F(CpusetOverridesTest, RepeatingOurCpusIsNoOverride) {
  const ContainerId app = node_.Run("app", kGuaranteed, 3000);
  EXPECT_EQ(Update(app, "1-3"), "1-3");
  EXPECT_EQ(Update(app, "3,2,1"), "1-3");
  EXPECT_EQ(Update(app, "1-3", TestNode::Resources(2000)), "1-2") << "what it had before";
  EXPECT_EQ(Update(app, "1-3", TestNode::Resources(3000)), "1-3") << "what it gets now";
  EXPECT_THAT(warnings_.lines, IsEmpty());
  EXPECT_THAT(Counts(), Overridden(0));
}

TEST_F(CpusetOverridesTest, AnUpdateWithoutCpusIsNoOverride) {
  const ContainerId app = node_.Run("app", kGuaranteed, 3000);
  EXPECT_EQ(Update(app, ""), "1-3");
  ASSERT_TRUE(node_.manager().AdmitUpdate(app, TestNode::Resources(3000)).ok());
  EXPECT_THAT(warnings_.lines, IsEmpty());
  EXPECT_THAT(Counts(), Overridden(0));
}

TEST_F(CpusetOverridesTest, ARefusedUpdateIsNoOverride) {
  const ContainerId app = node_.Run("app", kGuaranteed, 3000);
  LinuxResources large = TestNode::Resources(64'000);
  large.cpuset_cpus = "0-7";
  EXPECT_FALSE(node_.manager().AdmitUpdate(app, large).ok());
  EXPECT_THAT(warnings_.lines, IsEmpty());
  EXPECT_THAT(Counts(), Overridden(0));
}

TEST_F(CpusetOverridesTest, AListThatCannotBeReadIsOverriddenToo) {
  const ContainerId app = node_.Run("app", kGuaranteed, 3000);
  EXPECT_EQ(Update(app, "many\n"), "1-3");
  ASSERT_EQ(warnings_.lines.size(), 1u);
  EXPECT_THAT(warnings_.lines[0], HasSubstr("asks for CPUs many\\x0a for container"));
  EXPECT_THAT(Counts(), Overridden(1));
}

TEST_F(CpusetOverridesTest, AnotherBrainOfTheSameDaemonDoesNotReportAgain) {
  const ContainerId app = node_.Run("app", kGuaranteed, 3000);
  Update(app, "0-7");
  node_.Restart();
  Update(app, "0-7");
  EXPECT_EQ(warnings_.lines.size(), 1u);
  EXPECT_THAT(Counts(), Overridden(2));
}

TEST_F(CpusetOverridesTest, UnpinnedContainersHaveNoOverride) {
  CpusetOverrides overrides(&metrics_, nullptr);
  overrides.Note("ns/a/b", "0-7", {});
  EXPECT_THAT(warnings_.lines, IsEmpty());
  EXPECT_THAT(Counts(), Overridden(0));
  overrides.Note("ns/a/b", "0-7", {.before = {}, .decided = CpuSet{1}, .carried = CpuSet{1}});
  EXPECT_EQ(warnings_.lines.size(), 1u);
}

}  // namespace
}  // namespace resmgr
