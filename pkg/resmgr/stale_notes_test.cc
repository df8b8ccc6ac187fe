// SPDX-License-Identifier: Apache-2.0
// Restarts with notes that are older than the values in force: the disk was behind when the daemon
// was killed.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/crashing_file_system.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::FirstFitPolicy;
using test::TestNode;

using enum QosClass;

class StaleNotesTest : public testing::Test {
 protected:
  StaleNotesTest() { node_.KeepState(files_); }

  test::FakeRuntimeClient& runtime() { return node_.runtime; }
  // After the notes were written, and before the runtime's first report was noted.
  void RestartWithQuota(const ContainerId& id, std::optional<int64_t> quota) {
    node_.FlushState();
    runtime().Find(id)->resources.cpu_quota = quota;
    node_.Restart();
  }
  void AnswerAll() {
    ASSERT_TRUE(node_.RunUntil([this] {
      runtime().AnswerAll();
      return runtime().updates.empty();
    }));
  }
  void ListUntilReported(const ContainerId& id) {
    node_.manager().Resync();
    ASSERT_TRUE(node_.RunUntil([&] {
      while (!runtime().lists.empty())
        runtime().AnswerList();
      return node_.Known(id)->set_later.reported;
    }));
  }

  std::function<void(Plan&)> spoil_;   // of the next daemon's policy
  test::CrashingFileSystem files_{1};  // outlives the node, whose state is written on a thread
  TestNode node_{test::S1Ht(),         // CPUs 0-7
                 [this](const Machine& machine) {
                   auto policy = std::make_unique<FirstFitPolicy>(machine);
                   policy->spoil = spoil_;
                   return policy;
                 }};
};

// The policy lifts the quota on exclusive CPUs, and sets it again while the container shares
// others.
TEST_F(StaleNotesTest, TheQuotaThatTheClientAskedForIsNoPlugins) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  AnswerAll();
  ASSERT_EQ(runtime().Find(app)->resources.cpu_quota, -1);
  RestartWithQuota(app, TestNode::Resources(2000).cpu_quota);
  EXPECT_EQ(node_.Known(app)->set_later.cpu_quota, std::nullopt);
  AnswerAll();
  EXPECT_EQ(runtime().Find(app)->resources.cpu_quota, -1) << "it would be throttled";
}

TEST_F(StaleNotesTest, AQuotaThatAPolicyMayHaveLiftedIsNoPlugins) {
  const ContainerId web = node_.Run("web", kGuaranteed, 1500);
  AnswerAll();
  const std::optional<int64_t> asked = TestNode::Resources(1500).cpu_quota;
  ASSERT_EQ(runtime().Find(web)->resources.cpu_quota, asked);
  RestartWithQuota(web, -1);
  EXPECT_EQ(node_.Known(web)->set_later.cpu_quota, std::nullopt);
  AnswerAll();
  EXPECT_EQ(runtime().Find(web)->resources.cpu_quota, asked);
}

// No notes had the client's request while the policy lifted the quota.
TEST_F(StaleNotesTest, TheLimitOfAContainerThatWasFoundWithoutNotesIsNoPlugins) {
  const CreateRequest request =
      TestNode::Request(node_.AddPod("app", kGuaranteed), "app", /*milli_cpu=*/2000);
  Admission admission;
  admission.adjustment.cpus = CpuSet{1, 2};
  admission.adjustment.cpu_quota = -1;
  const ContainerId app = node_.Hold(request, admission);
  runtime().Find(app)->state = ContainerState::kRunning;
  node_.Reconnect();
  AnswerAll();
  ASSERT_EQ(node_.Known(app)->requested.cpu_quota, -1);
  RestartWithQuota(app, request.resources.cpu_quota);
  EXPECT_EQ(node_.Known(app)->set_later.cpu_quota, std::nullopt);
  EXPECT_EQ(node_.Known(app)->requested.cpu_quota, request.resources.cpu_quota);
}

TEST_F(StaleNotesTest, AnotherQuotaIsAPlugins) {
  const ContainerId web = node_.Run("web", kGuaranteed, 1500);
  AnswerAll();
  RestartWithQuota(web, 70'000);
  EXPECT_EQ(node_.Known(web)->set_later.cpu_quota, 70'000);
  AnswerAll();
  EXPECT_EQ(runtime().Find(web)->resources.cpu_quota, 70'000);
}

// Our own numbers on one container do not show that other programs set those of the next one.
TEST_F(StaleNotesTest, AnUpdateOfAnotherContainerCountsAfterOurOwnQuotaWasFound) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  AnswerAll();
  RestartWithQuota(app, TestNode::Resources(2000).cpu_quota);
  const ContainerId web = node_.Run("web", kBurstable, 500);
  AnswerAll();
  node_.FlushState();
  runtime().Find(web)->resources.cpu_shares = 1024;
  node_.Restart();
  EXPECT_EQ(node_.Known(web)->requirements.cpu_request.value, 1000);
}

// Numbers of a failed update stay if the client had named none before it. They do not show either
// that other programs set those of the next container.
TEST_F(StaleNotesTest, AFailedUpdateThatIsInForceIsNoPlugins) {
  CreateRequest request = TestNode::Request(node_.AddPod("bare", kBestEffort), "bare", 0);
  request.resources = {};
  const ContainerId bare = *node_.Create(request);
  node_.Start(bare);
  const ContainerId web = node_.Run("web", kBestEffort, 0);
  AnswerAll();
  const LinuxResources more = TestNode::Resources(1000);
  const StatusOr<Admission> update = node_.manager().AdmitUpdate(bare, more);
  ASSERT_TRUE(update.ok()) << update.status();
  runtime().Apply(bare, ReadValues(more));
  node_.manager().UpdateFailed(*update);
  AnswerAll();
  ListUntilReported(bare);
  EXPECT_EQ(runtime().Find(bare)->resources.cpu_shares, 1024);
  EXPECT_EQ(node_.Known(bare)->set_later.cpu_shares, std::nullopt);
  EXPECT_EQ(node_.Known(bare)->set_later.cpu_quota, std::nullopt);

  node_.FlushState();
  runtime().Find(web)->resources.cpu_shares = 1024;  // an update that is not on the disk
  node_.Restart();
  EXPECT_EQ(node_.Known(web)->requirements.cpu_request.value, 1000);
}

// The first list only shows that the container is new.
TEST_F(StaleNotesTest, AContainerMayBeElsewhereUntilTheFirstDecisionThatDoesNotFail) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  ASSERT_FALSE(runtime().updates.empty()) << "the shared one is to leave CPUs";
  node_.FlushState();
  bool broken = true;
  spoil_ = [&broken](Plan& plan) {
    if (broken) plan.changes.push_back({.key = ContainerKey{1000}, .placement = {}});
  };
  node_.Restart();
  ASSERT_NE(node_.Known(shared), nullptr);
  EXPECT_TRUE(node_.Known(shared)->may_be_elsewhere) << "nothing is decided yet";
  broken = false;
  ASSERT_TRUE(node_.AnswerNextList());
  EXPECT_FALSE(node_.Known(shared)->may_be_elsewhere);
  spoil_ = nullptr;
}

// Replies: their outcome is not lost with the gathered changes.

TEST_F(StaleNotesTest, TheOutcomeOfAnUpdateIsSavedBeforeTheReply) {
  const ContainerId app = node_.Run("app", kGuaranteed, 500);
  AnswerAll();
  node_.FlushState();
  const auto grown = node_.manager().AdmitUpdate(app, TestNode::Resources(1000));
  ASSERT_TRUE(grown.ok()) << grown.status();
  ASSERT_TRUE(node_.Saved(app)->asked && node_.Saved(app)->asked->place);
  EXPECT_EQ(node_.Saved(app)->asked->place->placement.exclusive.ToString(), "1");
  EXPECT_EQ(node_.Saved(app)->placement.exclusive.ToString(), "");
  node_.manager().UpdateSucceeded(*grown);
  EXPECT_FALSE(node_.Saved(app)->asked);
  EXPECT_EQ(node_.Saved(app)->requirements.cpu_request.value, 1000);
  EXPECT_EQ(node_.Saved(app)->placement.exclusive.ToString(), "1");
}

TEST_F(StaleNotesTest, WhatAChangedPodLeavesItsContainersIsSavedBeforeTheReply) {
  const PodSandboxId pod = node_.AddPod("batch", kGuaranteed);
  node_.manager().PodResourcesChanged(pod, {}, TestNode::Resources(4000));
  const ContainerId a = *node_.Create(TestNode::Request(pod, "a", 4000));
  const ContainerId b = *node_.Create(TestNode::Request(pod, "b", 4000));
  node_.FlushState();
  const auto saved = [&] {
    return node_.Saved(a)->requirements.cpu_request.value +
           node_.Saved(b)->requirements.cpu_request.value;
  };
  ASSERT_EQ(saved(), 4000);
  node_.manager().PodResourcesChanged(pod, {}, TestNode::Resources(3000));
  EXPECT_EQ(saved(), 3000);
}

}  // namespace
}  // namespace resmgr
