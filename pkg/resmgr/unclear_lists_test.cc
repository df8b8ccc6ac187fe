// SPDX-License-Identifier: Apache-2.0
// The runtime fails to report all of its objects, or its report differs from the brain's knowledge.
#include <chrono>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/crashing_file_system.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::FakeRuntimeClient;
using test::TestNode;
using testing::Each;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

using enum QosClass;

class UnclearListsTest : public testing::Test {
 protected:
  ResourceManager& manager() { return node_.manager(); }
  FakeRuntimeClient& runtime() { return node_.runtime; }

  // Expects that the daemon lists the runtime by itself.
  void ExpectLook() { ASSERT_TRUE(node_.AnswerNextList()); }

  test::CrashingFileSystem files_{1};
  TestNode node_{test::S1Ht(), test::FirstFit};
};

TEST_F(UnclearListsTest, ARestartTakesOverWhatItKnowsFromItsNotes) {
  node_.KeepState(files_);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  node_.FlushState();
  runtime().history.clear();
  runtime().unclear = true;
  node_.Restart();
  EXPECT_TRUE(manager().ready());
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(app), "1-2");
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
  EXPECT_EQ(node_.Exclusive(node_.Run("next", kGuaranteed, 2000)), "3-4");
  runtime().AnswerAll();

  runtime().unclear = false;
  ExpectLook();
  runtime().AnswerAll();
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  EXPECT_EQ(runtime().CpusOf(shared), "0,5-7");
  EXPECT_THAT(runtime().history, Each(Not(StartsWith(std::string(app.value()) + " cpus"))))
      << "it never moves";
}

TEST_F(UnclearListsTest, AnUnknownContainerIsLeftAloneUntilItsStateIsReported) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  runtime().history.clear();
  runtime().unclear = true;
  node_.Restart();
  EXPECT_TRUE(manager().ready());
  EXPECT_EQ(node_.Known(app), nullptr);
  EXPECT_THAT(runtime().history, IsEmpty());
  runtime().unclear = false;
  ExpectLook();
  ASSERT_NE(node_.Known(app), nullptr);
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  EXPECT_THAT(runtime().history, IsEmpty());
}

// Notes of a container whose pod is not clear yet are the only knowledge about it.
TEST_F(UnclearListsTest, NotesOutliveADaemonThatCouldNotUseThem) {
  node_.KeepState(files_);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  node_.FlushState();
  RuntimeInventory nothing;
  nothing.unclear.why = Internal("the shim hangs");
  const RuntimeInventory all = std::exchange(runtime().held, nothing);
  node_.Restart();
  runtime().held = all;
  runtime().unclear = true;
  node_.Restart();
  EXPECT_EQ(node_.Exclusive(app), "1-2");
}

TEST_F(UnclearListsTest, NotesOfWhatIsGoneAfterAReconnectAreForgotten) {
  node_.KeepState(files_);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  node_.FlushState();
  const RuntimeInventory all = runtime().held;
  runtime().Remove(app);
  node_.Reconnect();
  node_.FlushState();
  runtime().held = all;
  runtime().unclear = true;
  node_.Restart();
  EXPECT_EQ(node_.Known(app), nullptr) << "there are no notes to take it over by";
}

// Not only the first list after a connect does that.
TEST_F(UnclearListsTest, ALaterListErasesTheNotesOfRemovedContainers) {
  node_.KeepState(files_);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  node_.FlushState();
  const RuntimeInventory all = runtime().held;
  runtime().Remove(app);
  manager().Resync();
  ExpectLook();
  ASSERT_EQ(node_.Known(app), nullptr);
  node_.FlushState();
  runtime().held = all;
  runtime().unclear = true;
  node_.Restart();
  EXPECT_EQ(node_.Known(app), nullptr) << "there are no notes to take it over by";
}

TEST_F(UnclearListsTest, WhatIsKnownAlreadyStaysAsItIsAndItsEndIsSeen) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  runtime().history.clear();
  runtime().unclear = true;
  manager().Resync();
  ExpectLook();
  EXPECT_THAT(runtime().history, IsEmpty());
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  node_.Crash(app);
  manager().Resync();
  ExpectLook();
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
}

TEST_F(UnclearListsTest, ResyncsGoOnUntilTheRuntimeReportsTheState) {
  node_.KeepState(files_);
  node_.Run("app", kGuaranteed, 2000);
  node_.FlushState();
  runtime().unclear = true;
  node_.Restart();
  for (int i = 0; i < 3; ++i) {
    const size_t before = runtime().statuses;
    ExpectLook();
    EXPECT_EQ(runtime().statuses, before + 2) << "of the pod and of the container";
  }
  runtime().unclear = false;
  ExpectLook();
  const size_t before = runtime().statuses;
  manager().Resync();
  ExpectLook();
  EXPECT_EQ(runtime().statuses, before);
}

TEST_F(UnclearListsTest, ResyncsOfUnclearPodsBackOff) {
  node_.Run("app", kGuaranteed, 2000);
  runtime().unclear = true;
  node_.Restart();  // without notes of it
  int lists = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  ASSERT_TRUE(node_.RunUntil([&] {
    for (; !runtime().lists.empty(); ++lists)
      runtime().AnswerList();
    return lists >= 2 && std::chrono::steady_clock::now() > end;
  }));
  EXPECT_LE(lists, 10) << "every 4 ms would be 50";
}

TEST_F(UnclearListsTest, AListThatFailsIsAskedForAgain) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  node_.Crash(app);
  manager().Resync();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(node_.AwaitList());
    runtime().FailList(Internal("busy"));
  }
  ExpectLook();
  EXPECT_EQ(node_.Known(app)->state, ContainerState::kExited);
}

TEST_F(UnclearListsTest, AStartDoesNotExpireWhileListsFail) {
  const ContainerId shared = *node_.Create("shared", kBurstable, 100);
  const auto wait = manager().AdmitStart(shared, [](const Status&) {});
  runtime().BeginStart(shared);
  manager().StartUnclear(shared);
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  // Far beyond the limit.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  ASSERT_TRUE(node_.RunUntil([&] {
    while (!runtime().lists.empty())
      runtime().FailList(Internal("busy"));
    return std::chrono::steady_clock::now() > end;
  }));
  EXPECT_THAT(runtime().updates, IsEmpty()) << "it may be starting still";
  ASSERT_TRUE(node_.RunUntil([this] {
    while (!runtime().lists.empty())
      runtime().AnswerList();
    return !runtime().updates.empty();
  }));
}

// containerd does nothing then, and starts it all the same later.
TEST_F(UnclearListsTest, StoppingACreatedContainerKeepsItsCpus) {
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  manager().ContainerStopped(app);
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  ExpectLook();
  node_.Start(app);
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  EXPECT_EQ(node_.Exclusive(node_.Run("next", kGuaranteed, 2000)), "3-4");
}

TEST_F(UnclearListsTest, StoppingACreatedContainerFreesItsCpusWhereTheRuntimeSaysExited) {
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  node_.Stop(app);
  ExpectLook();
  EXPECT_EQ(node_.Known(app)->state, ContainerState::kExited);
  EXPECT_EQ(node_.Exclusive(node_.Run("next", kGuaranteed, 2000)), "1-2");
}

TEST_F(UnclearListsTest, AStartOfAnExitedContainerCausesAList) {
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  manager().ContainerExited(app);
  EXPECT_EQ(node_.Exclusive(node_.Run("next", kGuaranteed, 2000)), "1-2");
  node_.Start(app);
  ExpectLook();
  runtime().AnswerAll();
  EXPECT_EQ(node_.Exclusive(app), "3-4");
  EXPECT_EQ(runtime().CpusOf(app), "3-4");
}

TEST_F(UnclearListsTest, ContainersOfARuntimeThatWasNotAskedKeepTheirCpus) {
  const ContainerId away = node_.Run("away", kGuaranteed, 2000);
  const ContainerId here = node_.Run("here", kGuaranteed, 2000);
  runtime().AnswerAll();
  EXPECT_EQ(node_.Exclusive(away), "1-2");
  manager().RuntimeDisconnected();
  manager().RuntimeConnected();
  ASSERT_EQ(runtime().lists.size(), 1U);
  const FakeRuntimeClient::List list = std::exchange(runtime().lists, {}).front();
  // One of two runtimes was asked.
  RuntimeInventory told = runtime().held;
  for (const RuntimeContainer& container : told.containers) {
    if (container.id != away) continue;
    told.unclear.containers.insert(away);
    told.unclear.pods.insert(container.pod_id);
  }
  told.unclear.why = Unavailable("the runtime is away");
  std::erase_if(told.containers, [&](const auto& container) { return container.id == away; });
  std::erase_if(told.pods, [&](const Pod& pod) { return told.unclear.pods.contains(pod.id); });
  list.done(told);
  EXPECT_TRUE(manager().ready());
  EXPECT_EQ(node_.Exclusive(away), "1-2");
  EXPECT_EQ(node_.Exclusive(here), "3-4");
  EXPECT_EQ(node_.Exclusive(node_.Run("next", kGuaranteed, 2000)), "5-6");
}

}  // namespace
}  // namespace resmgr
