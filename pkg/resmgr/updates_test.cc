// SPDX-License-Identifier: Apache-2.0
// In-place resizes, and events during them.
#include "pkg/resmgr/updates.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/captured_log.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::CpuList;
using test::Must;
using test::TestNode;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using enum QosClass;

class UpdatesTest : public test::ManagerFixture {};

TEST_F(UpdatesTest, AResizeDecidesAnewAndOverridesTheCpuset) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 3000);
  LinuxResources resize = TestNode::Resources(2000);
  resize.cpuset_cpus = "0-7";  // a kubelet that has its own idea
  const Admission admission = *manager().AdmitUpdate(app, resize);
  EXPECT_EQ(CpuList(admission.adjustment), "1-2");
  EXPECT_EQ(admission.adjustment.cpu_quota, -1);
  EXPECT_THAT(runtime().updates, IsEmpty()) << "CPU 3 is still the other's";
  runtime().Apply(app, admission.adjustment);
  manager().UpdateSucceeded(admission);
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
  EXPECT_EQ(node_.Known(app)->requested.cpu_shares, 2048);
}

// The update carried the numbers of before.
TEST_F(UpdatesTest, NumbersDecidedDuringAnUpdateAreSentAfterIt) {
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  const ContainerKey key = node_.Known(app)->key;
  LinuxResources memory;
  memory.memory_limit = 1 << 20;
  const Admission admission = *manager().AdmitUpdate(app, memory);
  policy().spoil = [&](Plan& plan) {
    Placement& placement = plan.Change(key);
    placement = node_.Known(app)->placement;
    placement.cpu_quota = 70'000;
  };
  Must(node_.Create("other", kBurstable, 100));
  policy().spoil = nullptr;
  runtime().Apply(app, admission.adjustment);
  EXPECT_EQ(runtime().Find(app)->resources.cpu_quota, -1);
  manager().UpdateSucceeded(admission, admission.adjustment);
  runtime().AnswerAll();
  EXPECT_EQ(runtime().Find(app)->resources.cpu_quota, 70'000);
}

TEST_F(UpdatesTest, AGrowingContainerGetsCpusWhenTheOthersHaveLeft) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  const Admission admission = *manager().AdmitUpdate(app, TestNode::Resources(3000));
  EXPECT_EQ(CpuList(admission.adjustment), "1") << "2 and 3 are in use";
  runtime().Apply(app, admission.adjustment);
  manager().UpdateSucceeded(admission);
  EXPECT_EQ(runtime().CpusOf(app), "1");
  runtime().Answer(0);
  EXPECT_EQ(runtime().CpusOf(shared), "0,4-7");
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(app), "1-3");
  EXPECT_EQ(node_.Exclusive(app), "1-3");
}

TEST_F(UpdatesTest, AWaitingContainerIsNotSentBackToReassignedCpus) {
  const ContainerId app = node_.Run("app", kGuaranteed, 500);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  EXPECT_EQ(runtime().CpusOf(app), "0-7");
  Must(node_.Create("other", kGuaranteed, 3000));
  runtime().Answer(0, Internal("no"));
  runtime().Answer(0);
  EXPECT_EQ(runtime().CpusOf(shared), "0,4-7");
  const Admission admission = *manager().AdmitUpdate(app, TestNode::Resources(3000));
  EXPECT_EQ(node_.Exclusive(app), "4-6") << "where the shared one still is";
  EXPECT_EQ(CpuList(admission.adjustment), "0,4-7");
}

TEST_F(UpdatesTest, AContainerKeepsItsCpusUntilItHasLeftThem) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 3000);
  // Restores the former CPUs, as if the update of the shared container had been lost with the
  // daemon.
  runtime().Find(shared)->resources.cpuset_cpus = "0-7";
  node_.Restart();
  EXPECT_EQ(node_.Exclusive(app), "1-3");
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,4-7");

  const Admission admission = *manager().AdmitUpdate(app, TestNode::Resources(1000));
  EXPECT_EQ(node_.Exclusive(app), "1");
  EXPECT_THAT(runtime().updates, IsEmpty());
  runtime().Apply(app, admission.adjustment);
  manager().UpdateSucceeded(admission);
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,2-7");
}

// One container waits for the other to leave a CPU, and that one waits for the CPU on which the
// first is alone by chance. There is no third place, and the first needs no update.
TEST_F(UpdatesTest, CircularWaitsEndWhereNoContainerHasToMoveAside) {
  const ContainerId first = node_.Run("first", kGuaranteed, 1000);
  const ContainerId rest = node_.Run("rest", kGuaranteed, 6000);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  runtime().Find(first)->resources.cpuset_cpus = "0-1";
  runtime().Find(shared)->resources.cpuset_cpus = "1";
  runtime().Find(rest)->resources.cpu_quota = 600'000;  // which is put right first
  node_.Restart();
  EXPECT_EQ(node_.Exclusive(first), "1");
  EXPECT_EQ(node_.Placed(shared), "0");
  EXPECT_GE(runtime().AnswerAll(), 3u);
  EXPECT_EQ(runtime().CpusOf(first), "1");
  EXPECT_EQ(runtime().CpusOf(shared), "0");
}

// A new attempt takes its CPUs over meanwhile, is not created after all, and gives them back.
TEST_F(UpdatesTest, AnUpdateThatFailsWhileANewAttemptHasItsPlaceIsRolledBack) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  const Admission resize = *manager().AdmitUpdate(app, TestNode::Resources(3000));
  const PodSandboxId pod = node_.Known(app)->pod_id;
  const Admission next =
      Must(manager().AdmitCreate(TestNode::Request(pod, "app", 2000, /*attempt=*/1)));
  manager().UpdateFailed(resize);
  manager().CreateFailed(next.key);
  runtime().AnswerAll();
  EXPECT_EQ(node_.Known(app)->requirements.cpu_request.value, 2000);
  EXPECT_EQ(node_.Known(app)->requested.cpu_shares, 2048);
  EXPECT_EQ(runtime().CpusOf(shared), node_.Placed(shared));
}

TEST_F(UpdatesTest, AFailedUpdateIsRolledBack) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 3000);
  const Admission admission = *manager().AdmitUpdate(app, TestNode::Resources(1000));
  manager().UpdateFailed(admission);
  runtime().AnswerAll();
  EXPECT_EQ(node_.Exclusive(app).size(), 3u);
  EXPECT_EQ(runtime().CpusOf(app), node_.Placed(app));
  EXPECT_EQ(runtime().CpusOf(shared), node_.Placed(shared));
  EXPECT_EQ(node_.Known(app)->requirements.cpu_request.value, 3000);
  EXPECT_EQ(node_.Known(app)->requested.cpu_shares, 3072);
}

TEST_F(UpdatesTest, AfterAFailureWhatWasConfirmedBeforeItCounts) {
  const ContainerId app = node_.Run("app", kGuaranteed, 3000);
  const Admission first = *manager().AdmitUpdate(app, TestNode::Resources(2000));
  const std::string placed = node_.Exclusive(app);
  const Admission second = *manager().AdmitUpdate(app, TestNode::Resources(1000));
  runtime().Apply(app, first.adjustment);
  manager().UpdateSucceeded(first);
  manager().UpdateFailed(second);
  runtime().AnswerAll();
  EXPECT_EQ(node_.Exclusive(app), placed);
  EXPECT_EQ(node_.Known(app)->requirements.cpu_request.value, 2000);
  EXPECT_EQ(node_.Known(app)->requested.cpu_shares, 2048);
}

TEST_F(UpdatesTest, WhenAllUpdatesFailTheContainerIsWhereItWasBeforeTheFirst) {
  const ContainerId app = node_.Run("app", kGuaranteed, 3000);
  const std::string placed = node_.Exclusive(app);
  const Admission first = *manager().AdmitUpdate(app, TestNode::Resources(500));
  const Admission second = *manager().AdmitUpdate(app, TestNode::Resources(2000));
  manager().UpdateFailed(first);
  manager().UpdateFailed(second);
  runtime().AnswerAll();
  EXPECT_EQ(node_.Exclusive(app), placed);
  EXPECT_EQ(node_.Known(app)->requirements.cpu_request.value, 3000);
}

TEST_F(UpdatesTest, WhatTheContainerNeedsIsWhatIsConfirmedThoughItsCpusAreGone) {
  const ContainerId app = node_.Run("app", kGuaranteed, 5000);
  const Admission admission = *manager().AdmitUpdate(app, TestNode::Resources(1000));
  const ContainerId other = *node_.Create("other", kGuaranteed, 6000);
  manager().UpdateFailed(admission);
  runtime().AnswerAll();
  EXPECT_EQ(node_.Known(app)->requirements.cpu_request.value, 5000);
  EXPECT_EQ(node_.Known(app)->requested.cpu_shares, 5120);
  EXPECT_EQ(node_.Exclusive(other), "2-7") << "it keeps what it was given";
  EXPECT_EQ(runtime().CpusOf(app), node_.Placed(app));
}

TEST_F(UpdatesTest, ARefusedUpdateChangesNothing) {
  const ContainerId app = node_.Run("app", kGuaranteed, 3000);
  const StatusOr<Admission> refused = manager().AdmitUpdate(app, TestNode::Resources(9000));
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(node_.Exclusive(app), "1-3");
  EXPECT_EQ(node_.Known(app)->requirements.cpu_request.value, 3000);
  EXPECT_THAT(runtime().history, IsEmpty());
}

TEST_F(UpdatesTest, AnUpdateOfOtherValuesKeepsThePlacement) {
  const ContainerId app = node_.Run("app", kGuaranteed, 3000);
  LinuxResources memory;
  memory.memory_limit = 1 << 30;
  const Admission admission = *manager().AdmitUpdate(app, memory);
  EXPECT_EQ(CpuList(admission.adjustment), "1-3");
  manager().UpdateSucceeded(admission);
  EXPECT_EQ(node_.Known(app)->requirements.memory_limit.value, 1 << 30);
  EXPECT_EQ(node_.Known(app)->requirements.cpu_request.value, 3000);
  EXPECT_THAT(runtime().history, IsEmpty());
}

TEST_F(UpdatesTest, FromExclusiveToSharedTheQuotaComesBack) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  EXPECT_EQ(runtime().Find(app)->resources.cpu_quota, -1);
  const Admission admission = *manager().AdmitUpdate(app, TestNode::Resources(1500));
  EXPECT_EQ(CpuList(admission.adjustment), "0-7");
  EXPECT_FALSE(admission.adjustment.cpu_quota.has_value()) << "as the request says";
}

// `docker update --cpu-shares`: the request does not name the quota that the policy had lifted.
TEST_F(UpdatesTest, TheQuotaComesBackAlsoIfTheRequestDoesNotNameIt) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  LinuxResources fewer;
  fewer.cpu_shares = 1536;
  const Admission admission = *manager().AdmitUpdate(app, fewer);
  EXPECT_EQ(CpuList(admission.adjustment), "0-7");
  runtime().Apply(app, admission.adjustment);
  manager().UpdateSucceeded(admission, admission.adjustment);
  runtime().AnswerAll();
  EXPECT_EQ(runtime().Find(app)->resources.cpu_quota, 200'000);
  EXPECT_TRUE(manager().Settled(node_.Known(app)->key));
}

// An update of ours failed, and the client's next one does not have its numbers.
TEST_F(UpdatesTest, NumbersOfAFailedUpdateAreSentAfterAnUpdateWithoutThem) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  const ContainerKey key = node_.Known(app)->key;
  policy().spoil = [&](Plan& plan) {
    Placement& placement = plan.Change(key);
    placement = node_.Known(app)->placement;
    placement.cpu_quota.reset();
  };
  ASSERT_TRUE(node_.Create("other", kBurstable, 100).ok());
  policy().spoil = nullptr;
  ASSERT_EQ(runtime().updates.size(), 1u);
  runtime().Answer(0, Internal("no"));
  LinuxResources cpuset;
  cpuset.cpuset_cpus = "1-2";
  const Admission admission = *manager().AdmitUpdate(app, cpuset);
  ASSERT_FALSE(admission.adjustment.cpu_quota.has_value());
  runtime().Apply(app, admission.adjustment);
  manager().UpdateSucceeded(admission, admission.adjustment);
  runtime().AnswerAll();
  EXPECT_EQ(runtime().Find(app)->resources.cpu_quota, 200'000);
}

TEST_F(UpdatesTest, AnUpdateThatOverlapsOneOfOursIsSentAgain) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  ASSERT_EQ(runtime().updates.size(), 1u);
  LinuxResources weight;
  weight.cpu_shares = 512;
  const Admission admission = *manager().AdmitUpdate(shared, weight);
  EXPECT_EQ(CpuList(admission.adjustment), "0,3-7");
  runtime().AnswerAll();
  manager().UpdateSucceeded(admission);
  ASSERT_EQ(runtime().updates.size(), 1u) << "which of the two came last is not known";
  EXPECT_EQ(CpuList(runtime().updates[0].adjustment), "0,3-7");
  EXPECT_EQ(runtime().updates[0].adjustment.cpu_shares, 512);
}

// Updates that ask for other CPUs than the policy's.

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
