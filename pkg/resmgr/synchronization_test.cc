// SPDX-License-Identifier: Apache-2.0
// The brain reads the runtime's lists, after a connect and later.
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/manager_fixture.h"

namespace resmgr {
namespace {

using test::TestNode;
using test::WithCpus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using enum QosClass;

class SynchronizationTest : public test::ManagerFixture {};

TEST_F(SynchronizationTest, WhenReadyTellsHowTheConnectionIs) {
  std::vector<std::string> log;
  const auto note = [&log](const std::string& name) {
    return [&log, name](const Status& status) {
      log.push_back(name + std::string(CodeName(status.code())));
    };
  };
  manager().WhenReady(note("connected "));
  manager().RuntimeDisconnected();
  manager().WhenReady(note("lost "));
  manager().RuntimeConnected();
  manager().WhenReady(note("listing "));
  runtime().AnswerList();
  manager().RuntimeDisconnected();
  manager().RuntimeConnected();
  manager().WhenReady(note("waiting "));
  manager().RuntimeDisconnected();
  EXPECT_THAT(log,
              ElementsAre("connected OK", "lost UNAVAILABLE", "listing OK", "waiting UNAVAILABLE"));
}

TEST_F(SynchronizationTest, AFailedListIsTriedAgain) {
  manager().RuntimeDisconnected();
  manager().RuntimeConnected();
  std::optional<Status> ready;
  manager().WhenReady([&](const Status& status) { ready = status; });
  runtime().FailList(DeadlineExceeded("too slow"));
  ASSERT_TRUE(ready.has_value());
  EXPECT_EQ(ready->code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(*ready)), HasSubstr("too slow"));
  ASSERT_TRUE(node_.AwaitList());
  manager().WhenReady([&](const Status& status) { ready = status; });
  runtime().AnswerList();
  EXPECT_TRUE(ready->ok());
}

TEST_F(SynchronizationTest, ARestartMovesNobody) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId a = node_.Run("a", kGuaranteed, 2000);
  const ContainerId b = node_.Run("b", kGuaranteed, 1000);
  node_.Stop(a);
  runtime().AnswerAll();
  runtime().history.clear();
  node_.Restart();
  EXPECT_THAT(runtime().history, IsEmpty());
  EXPECT_EQ(node_.Exclusive(b), "3");
  EXPECT_EQ(node_.Placed(shared), "0-2,4-7");
  EXPECT_EQ(node_.Known(a)->state, ContainerState::kExited);
  EXPECT_EQ(node_.Known(b)->state, ContainerState::kRunning);
}

TEST_F(SynchronizationTest, AReconnectPushesOnlyWhatDiffers) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId other = node_.Run("other", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  runtime().history.clear();
  runtime().Find(other)->resources.cpuset_cpus = "0-7";  // changed by another program
  node_.Reconnect();
  EXPECT_THAT(runtime().history, ElementsAre(WithCpus(other, "0,3-7")));
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
}

TEST_F(SynchronizationTest, AReconnectFindsRemovedContainers) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId removed = node_.Run("removed", kGuaranteed, 1000);
  const ContainerId crashed = node_.Run("crashed", kGuaranteed, 1000);
  runtime().Remove(removed);
  node_.Crash(crashed);
  node_.Reconnect();
  runtime().AnswerAll();
  EXPECT_EQ(node_.Known(removed), nullptr);
  EXPECT_EQ(node_.Known(crashed)->state, ContainerState::kExited);
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
}

TEST_F(SynchronizationTest, WhatHappensDuringAListOverrulesIt) {
  const ContainerId stopped = node_.Run("stopped", kGuaranteed, 1000);
  const ContainerId removed = node_.Run("removed", kGuaranteed, 1000);
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  manager().RuntimeDisconnected();
  runtime().DropAll();
  manager().RuntimeConnected();
  const RuntimeInventory before = runtime().held;
  node_.Stop(stopped);
  node_.Remove(removed);
  const ContainerId fresh = *node_.Create(TestNode::Request(pod, "app", 1000));
  runtime().held = before;
  runtime().AnswerList();
  EXPECT_EQ(node_.Known(stopped)->state, ContainerState::kExited);
  EXPECT_EQ(node_.Known(removed), nullptr);
  ASSERT_NE(node_.Known(fresh), nullptr) << "younger than the list";
  EXPECT_EQ(policy().grants().size(), 1u);
}

TEST_F(SynchronizationTest, ACreationUnderWayIsLeftAloneByAList) {
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  const CreateRequest request = TestNode::Request(pod, "app", 2000);
  const Admission admission = *manager().AdmitCreate(CreateRequest(request));
  // The runtime has created it already, its answer is still on its way.
  RuntimeContainer early;
  early.id = ContainerId("early");
  early.pod_id = pod;
  early.name = "app";
  runtime().held.containers.push_back(early);
  node_.Reconnect();
  EXPECT_EQ(node_.KnownContainers(), 1u);
  manager().CreateSucceeded(admission.key, early.id);
  EXPECT_EQ(node_.Exclusive(early.id), "1-2");
  EXPECT_EQ(node_.KnownContainers(), 1u);
}

TEST_F(SynchronizationTest, ALostConnectionEndsWaits) {
  node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  std::optional<Status> decided;
  const auto wait = manager().AdmitStart(app, [&](const Status& status) { decided = status; });
  manager().RuntimeDisconnected();
  ASSERT_TRUE(decided.has_value());
  EXPECT_EQ(decided->code(), StatusCode::kUnavailable);
}

TEST_F(SynchronizationTest, AnUnansweredShrinkIsSentAgainAfterAReconnect) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  runtime().history.clear();
  node_.Reconnect();
  EXPECT_THAT(runtime().history, ElementsAre(testing::StartsWith(WithCpus(shared, "0,3-7"))));
  bool started = false;
  const auto wait = manager().AdmitStart(app, [&](const Status&) { started = true; });
  EXPECT_FALSE(started);
  runtime().AnswerAll();
  EXPECT_TRUE(started);
}

TEST_F(SynchronizationTest, AnAnswerFromBeforeAReconnectIsVoid) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  const auto late = runtime().updates[0].done;
  node_.Reconnect();
  late(OkStatus());
  EXPECT_EQ(runtime().updates.size(), 1u);
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
}

TEST_F(SynchronizationTest, ARuntimeThatRefusesAnUpdateIsAskedWhatItHolds) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  std::optional<Status> decided;
  const auto wait = manager().AdmitStart(app, [&](const Status& status) { decided = status; });
  node_.Crash(shared);
  runtime().Answer(0, Internal("container is not running"));
  ASSERT_TRUE(node_.AnswerNextList());
  EXPECT_EQ(node_.Known(shared)->state, ContainerState::kExited);
  EXPECT_TRUE(decided.has_value() && decided->ok()) << "no container is in the way any more";
}

}  // namespace
}  // namespace resmgr
