// SPDX-License-Identifier: Apache-2.0
// Containers that run again after they have exited, as dockerd's may: the traces of earlier
// decisions, updates and daemons.
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/state_files.h"
#include "pkg/resmgr/testing/test_node.h"

namespace resmgr {
namespace {

using test::CpuList;
using test::TestNode;
using testing::IsEmpty;
using testing::SizeIs;

using enum QosClass;
using Kind = ContainerEvent::Kind;

class SecondLivesTest : protected test::StateFiles, public test::ManagerFixture {
 protected:
  SecondLivesTest() {
    runtime().starts_exited = true;
    node_.KeepState(files_);
  }
  // Starts the container at dockerd's own socket, so that no start passes here.
  void StartOutside(const ContainerId& id) { runtime().Find(id)->state = ContainerState::kRunning; }
  void ListStarted(const ContainerId& id) {
    StartOutside(id);
    manager().OnContainerEvent({Kind::kStarted, std::string(id.value())});
    ASSERT_TRUE(node_.AwaitList());
    runtime().AnswerLists();
    // A list that was under way is followed by another one.
    ASSERT_TRUE(node_.RunUntil([&] {
      runtime().AnswerLists();
      return node_.Known(id)->state == ContainerState::kRunning;
    }));
  }
  // A shared container that has ended while an update of it is under way, the first of `updates`.
  ContainerId EndedWhileUpdated() {
    ContainerId again = node_.Run("again", kBurstable, 100);
    EXPECT_TRUE(node_.Create("own", kGuaranteed, 1000).ok());
    EXPECT_THAT(runtime().updates, SizeIs(1));
    node_.Stop(again);
    return again;
  }
};

TEST_F(SecondLivesTest, OneThatHasExitedHasNoClaimToItsCpusAfterARestart) {
  const ContainerId again = node_.Run("again", kGuaranteed, 1000);
  node_.Stop(again);
  const ContainerId other = node_.Run("other", kGuaranteed, 1000);
  ASSERT_EQ(runtime().CpusOf(other), "1");
  node_.FlushState();
  node_.Restart([&] { StartOutside(again); });
  runtime().AnswerAll();
  EXPECT_EQ(node_.Exclusive(other), "1");
  EXPECT_EQ(runtime().CpusOf(other), "1") << "it has been there rightfully";
  EXPECT_EQ(runtime().CpusOf(again), "2");
}

// The daemon that finds it exited has not decided about it.
TEST_F(SecondLivesTest, OneThatIsFoundExitedHasNoClaimEither) {
  const ContainerId again = node_.Run("again", kGuaranteed, 1000);
  node_.FlushState();
  node_.Restart([&] { node_.Crash(again); });
  const ContainerId other = node_.Run("other", kGuaranteed, 1000);
  ASSERT_EQ(runtime().CpusOf(other), "1");
  node_.FlushState();
  node_.Restart([&] { StartOutside(again); });
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(other), "1");
  EXPECT_EQ(runtime().CpusOf(again), "2");
}

TEST_F(SecondLivesTest, WhatItAsksForIsKeptAllTheSame) {
  const ContainerId again = node_.Run("again", kGuaranteed, 1000);
  LinuxResources resize;
  resize.cpu_shares = 700;
  const Admission unanswered = *manager().AdmitUpdate(again, resize);
  node_.Stop(again);
  manager().UpdateFailed(unanswered);
  node_.FlushState();
  node_.Restart([&] { StartOutside(again); });
  runtime().AnswerAll();
  EXPECT_EQ(node_.Known(again)->requested.cpu_shares, TestNode::Resources(1000).cpu_shares);
  EXPECT_EQ(node_.Known(again)->requirements.cpu_request.value, 1000);
  EXPECT_TRUE(node_.Known(again)->cpus_bound);
  EXPECT_EQ(node_.Exclusive(again), "1");
}

// No other update is under way, but the pending answer lets its container leave the CPU.
TEST_F(SecondLivesTest, OthersWaitForAnUpdateOfAFormerLife) {
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  const ContainerId again = EndedWhileUpdated();
  ListStarted(again);
  ASSERT_EQ(runtime().CpusOf(again), "0,2-7");
  const Admission more = *manager().AdmitUpdate(app, TestNode::Resources(2000));
  ASSERT_EQ(CpuList(more.adjustment), "1");
  manager().UpdateSucceeded(more);
  ASSERT_THAT(runtime().updates, SizeIs(1)) << "the other one is still on CPU 3";
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(app), "1,3");
  EXPECT_EQ(runtime().CpusOf(again), "0,4-7");
}

TEST_F(SecondLivesTest, AnAnswerToAClientIsNotTakenForThatOfAFormerLife) {
  const ContainerId again = EndedWhileUpdated();
  ListStarted(again);
  LinuxResources memory;
  memory.memory_limit = 1 << 20;
  const Admission update = *manager().AdmitUpdate(again, memory);
  runtime().Apply(again, update.adjustment);
  manager().UpdateSucceeded(update);
  runtime().AnswerAll();
  ASSERT_TRUE(node_.Create("more", kGuaranteed, 1000).ok());
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(again), "0,3-7");
}

// A container without a pod leaves nothing else that could end with its pod.
TEST_F(SecondLivesTest, ACreationThatHasFailedLeavesNoNote) {
  const PodSandboxId pod = node_.AddPod("docker", kGuaranteed);
  CreateRequest request = TestNode::Request(pod, "app", 1000);
  request.hints.push_back({.source = "device /dev/dsp"});
  const auto failed = manager().AdmitCreate(std::move(request));
  ASSERT_TRUE(failed.ok());
  manager().set_later().CreationSent(failed->key, {});
  manager().CreateFailed(failed->key);
  const ContainerId app = node_.Hold(TestNode::Request(pod, "app", 1000), {});
  node_.FlushState();
  node_.Restart();
  EXPECT_THAT(node_.Known(app)->hints, IsEmpty());
}

// An update of a container that is gone is not waited for.
TEST_F(SecondLivesTest, AnUpdateThatOutlivesItsContainerIsOver) {
  const ContainerId gone = node_.Run("gone", kBurstable, 100);
  const ContainerId first = node_.Run("first", kGuaranteed, 1000);
  const ContainerId second = node_.Run("second", kGuaranteed, 1000);
  runtime().AnswerAll();
  LinuxResources memory;
  memory.memory_limit = 1 << 20;
  const Admission update = *manager().AdmitUpdate(gone, memory);
  node_.Remove(gone);
  manager().UpdateFailed(update);
  ASSERT_THAT(runtime().updates, IsEmpty());
  // The containers must change places, and each waits for the other one.
  policy().spoil = [&](Plan& plan) {
    const Placement places[] = {node_.Known(first)->placement, node_.Known(second)->placement};
    plan.Change(node_.Known(first)->key) = places[1];
    plan.Change(node_.Known(second)->key) = places[0];
  };
  ASSERT_TRUE(node_.Create("new", kBurstable, 100).ok());
  policy().spoil = nullptr;
  EXPECT_THAT(runtime().updates, SizeIs(1)) << "one moves aside at once";
}

}  // namespace
}  // namespace resmgr
