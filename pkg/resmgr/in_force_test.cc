// SPDX-License-Identifier: Apache-2.0
// Observers are told the values in force, and how long a container exists.
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/crashing_file_system.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::TestNode;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

using enum QosClass;

class Recorder final : public Observer {
 public:
  void OnInForce(const Act& act, const Place& place) override {
    told.push_back(fmt::format("{} cpus={} exclusive={}", act.container.name,
                               place.cpus ? place.cpus->ToString() : "any",
                               place.exclusive.ToString()));
  }
  void OnRemoved(const Act& act) override { removed.push_back(act.container.name); }
  void OnListed(const Snapshot& all) override {
    listed.clear();
    all.ForEachContainer(
        [this](const Pod&, const Container& container) { listed.push_back(container.name); });
  }
  std::vector<std::string> Take() { return std::exchange(told, {}); }

  std::vector<std::string> told;
  std::vector<std::string> removed;
  std::vector<std::string> listed;
};

class InForceTest : public testing::Test {
 protected:
  Recorder recorder_;
  test::CrashingFileSystem files_{1};  // outlives the node, whose state is written on a thread
  TestNode node_{test::S1Ht(),         // CPUs 0-7
                 test::FirstFit, TestNode::Observed(recorder_)};
};

TEST_F(InForceTest, ACreationIsToldWhenItSucceeded) {
  const CreateRequest request = TestNode::Request(node_.AddPod("dsp", kGuaranteed), "dsp", 2000);
  const Admission admission = *node_.manager().AdmitCreate(CreateRequest(request));
  EXPECT_THAT(recorder_.told, IsEmpty()) << "it is decided only";
  node_.Created(request, admission);
  EXPECT_THAT(recorder_.told, ElementsAre("dsp cpus=1-2 exclusive=1-2"));
}

TEST_F(InForceTest, ACreationThatFailsIsNot) {
  const CreateRequest request = TestNode::Request(node_.AddPod("dsp", kGuaranteed), "dsp", 2000);
  const Admission admission = *node_.manager().AdmitCreate(CreateRequest(request));
  node_.manager().CreateFailed(admission.key);
  EXPECT_THAT(recorder_.told, IsEmpty());
}

TEST_F(InForceTest, ACreationWithoutResourcesFollowsInAnUpdate) {
  CreateRequest request = TestNode::Request(node_.AddPod("web", kBurstable), "web", 100);
  request.has_resources = false;
  request.resources = {};
  ASSERT_TRUE(node_.Create(request).ok());
  EXPECT_THAT(recorder_.Take(), ElementsAre("web cpus=any exclusive="));
  node_.runtime.AnswerAll();
  EXPECT_THAT(recorder_.told, ElementsAre("web cpus=0-7 exclusive="));
}

TEST_F(InForceTest, AMoveIsToldWhenTheRuntimeHasDoneIt) {
  node_.Run("web", kBurstable, 100);
  recorder_.Take();
  const ContainerId dsp = *node_.Create("dsp", kGuaranteed, 2000);
  EXPECT_THAT(recorder_.Take(), ElementsAre("dsp cpus=1-2 exclusive=1-2"));
  node_.runtime.AnswerAll();
  EXPECT_THAT(recorder_.Take(), ElementsAre("web cpus=0,3-7 exclusive="));
  node_.Remove(dsp);
  EXPECT_THAT(recorder_.told, IsEmpty());
  node_.runtime.AnswerAll();
  EXPECT_THAT(recorder_.told, ElementsAre("web cpus=0-7 exclusive="));
}

TEST_F(InForceTest, AMoveThatFailsIsToldAfterALaterTry) {
  node_.Run("web", kBurstable, 100);
  *node_.Create("dsp", kGuaranteed, 2000);
  recorder_.Take();
  node_.runtime.Answer(0, Unavailable("busy"));
  EXPECT_THAT(recorder_.told, IsEmpty());
  ASSERT_TRUE(node_.RunUntil([this] { return !node_.runtime.updates.empty(); }));
  node_.runtime.AnswerAll();
  EXPECT_THAT(recorder_.told, ElementsAre("web cpus=0,3-7 exclusive="));
}

TEST_F(InForceTest, AnUpdateOfTheKubeletIsToldWhenItSucceeded) {
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 2000);
  recorder_.Take();
  const Admission failed = *node_.manager().AdmitUpdate(dsp, TestNode::Resources(1000));
  node_.manager().UpdateFailed(failed);
  EXPECT_THAT(recorder_.Take(), Not(Contains("dsp cpus=1 exclusive=1")));
  node_.runtime.AnswerAll();
  recorder_.Take();
  const Admission admission = *node_.manager().AdmitUpdate(dsp, TestNode::Resources(1000));
  EXPECT_THAT(recorder_.told, IsEmpty());
  node_.runtime.Apply(dsp, admission.adjustment);
  node_.manager().UpdateSucceeded(admission);
  EXPECT_THAT(recorder_.told, ElementsAre("dsp cpus=1 exclusive=1"));
}

TEST_F(InForceTest, ARestartedDaemonTellsWhereEachContainerRuns) {
  node_.KeepState(files_);
  node_.Run("dsp", kGuaranteed, 2000);
  node_.Run("web", kBurstable, 100);
  node_.FlushState();
  recorder_.Take();
  node_.Restart();
  // Each container is reported once by the list, and the sharing one again: the list shows no other
  // container on its CPUs, but they are not exclusive.
  EXPECT_THAT(recorder_.told,
              UnorderedElementsAre("dsp cpus=1-2 exclusive=1-2",
                                   "web cpus=0,3-7 exclusive=", "web cpus=0,3-7 exclusive="));
}

TEST_F(InForceTest, WhatIsUnknownIsNotTold) {
  node_.Run("web", kBurstable, 100);
  *node_.Create("dsp", kGuaranteed, 2000);
  recorder_.Take();
  // The update is under way when the connection is lost, and was carried out unseen.
  node_.Reconnect();
  EXPECT_THAT(recorder_.Take(), Each(StartsWith("dsp ")));
  node_.runtime.AnswerAll();
  EXPECT_THAT(recorder_.told, ElementsAre("web cpus=0,3-7 exclusive="));
}

TEST_F(InForceTest, ARemovalIsToldHoweverItBecomesKnown) {
  const ContainerId removed = node_.Run("removed", kBurstable, 100);
  const ContainerId exited = node_.Run("exited", kBurstable, 100);
  const ContainerId vanished = node_.Run("vanished", kBurstable, 100);
  const ContainerId missing = node_.Run("missing", kBurstable, 100);
  const PodSandboxId pod = node_.Known(exited)->pod_id;
  node_.Stop(exited);
  EXPECT_THAT(recorder_.removed, IsEmpty()) << "its files may still be wanted";
  node_.Remove(removed);
  EXPECT_THAT(recorder_.removed, ElementsAre("removed"));
  node_.runtime.Remove(exited);
  node_.manager().PodRemoved(pod);
  EXPECT_THAT(recorder_.removed, ElementsAre("removed", "exited"));
  node_.runtime.Remove(vanished);
  node_.Reconnect();
  EXPECT_THAT(recorder_.removed, ElementsAre("removed", "exited", "vanished"));
  // The answer to an update is the first report.
  node_.runtime.Remove(missing);
  *node_.Create("dsp", kGuaranteed, 2000);
  node_.runtime.AnswerAll();
  EXPECT_THAT(recorder_.removed, ElementsAre("removed", "exited", "vanished", "missing"));
}

TEST_F(InForceTest, ACompleteListHasAllContainers) {
  const ContainerId exited = node_.Run("exited", kBurstable, 100);
  node_.Stop(exited);
  node_.Run("web", kBurstable, 100);
  const CreateRequest request = TestNode::Request(node_.AddPod("new", kBurstable), "new", 100);
  ASSERT_TRUE(node_.manager().AdmitCreate(CreateRequest(request)).ok());
  node_.Reconnect();
  EXPECT_THAT(recorder_.listed, UnorderedElementsAre("exited", "web", "new"));
}

TEST_F(InForceTest, AListThatIsNotCompleteIsNotTold) {
  node_.Run("web", kBurstable, 100);
  recorder_.listed = {"none"};
  node_.runtime.unclear = true;
  node_.Reconnect();
  EXPECT_THAT(recorder_.listed, ElementsAre("none"));
}

}  // namespace
}  // namespace resmgr
