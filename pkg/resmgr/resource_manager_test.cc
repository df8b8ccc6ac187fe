// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/resource_manager.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/test_node.h"
#include "test/support/sanitizer.h"

namespace resmgr {
namespace {

using test::CpuList;
using test::TestNode;
using test::WithCpus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using enum QosClass;

class ResourceManagerTest : public test::ManagerFixture {};

// Creation

TEST_F(ResourceManagerTest, ACreationCarriesItsPlacement) {
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  const StatusOr<Admission> admission = manager().AdmitCreate(TestNode::Request(pod, "app", 2000));
  ASSERT_TRUE(admission.ok());
  EXPECT_EQ(CpuList(admission->adjustment), "1-2");
  EXPECT_EQ(admission->adjustment.cpu_quota, -1);
  EXPECT_FALSE(admission->adjustment.cpu_shares.has_value()) << "left as requested";

  const ContainerId id = node_.Created(TestNode::Request(pod, "app", 2000), *admission);
  ASSERT_NE(node_.Known(id), nullptr);
  EXPECT_EQ(node_.Known(id)->state, ContainerState::kCreated);
  EXPECT_EQ(node_.Known(id)->requirements.cpu_request.value, 2000);
  EXPECT_EQ(node_.Exclusive(id), "1-2");
  EXPECT_THAT(runtime().updates, IsEmpty());
}

TEST_F(ResourceManagerTest, OthersShrinkWhileTheCreationIsUnderWay) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  ASSERT_TRUE(manager().AdmitCreate(TestNode::Request(pod, "app", 2000)).ok());
  EXPECT_THAT(runtime().history, ElementsAre(WithCpus(shared, "0,3-7")));
}

TEST_F(ResourceManagerTest, ARefusalChangesNothing) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  const StatusOr<Admission> refused = manager().AdmitCreate(TestNode::Request(pod, "app", 9000));
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("ns/web/app"));
  EXPECT_THAT(runtime().history, IsEmpty());
  EXPECT_EQ(node_.KnownContainers(), 1u);
  EXPECT_EQ(node_.Placed(shared), "0-7");
}

TEST_F(ResourceManagerTest, AFailedCreationIsRolledBackAndTheShrinkUndone) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  const Admission admission = *manager().AdmitCreate(TestNode::Request(pod, "app", 2000));
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
  manager().CreateFailed(admission.key);
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
  EXPECT_THAT(policy().grants(), IsEmpty());
  EXPECT_EQ(node_.KnownContainers(), 1u);
}

TEST_F(ResourceManagerTest, AShrinkThatIsUndoneBeforeItIsAnsweredEndsRight) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  const Admission admission = *manager().AdmitCreate(TestNode::Request(pod, "app", 2000));
  manager().CreateFailed(admission.key);
  EXPECT_EQ(runtime().updates.size(), 1u) << "one at a time";
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
  EXPECT_THAT(runtime().history, ElementsAre(WithCpus(shared, "0,3-7"), WithCpus(shared, "0-7")));
}

TEST_F(ResourceManagerTest, AChangeDuringACreationIsPushedRightAfterIt) {
  const PodSandboxId slow_pod = node_.AddPod("slow", kBurstable);
  const CreateRequest slow = TestNode::Request(slow_pod, "app", 100);
  const Admission admission = *manager().AdmitCreate(CreateRequest(slow));
  EXPECT_EQ(CpuList(admission.adjustment), "0-7");
  ASSERT_TRUE(node_.Create("fast", kGuaranteed, 2000).ok());
  EXPECT_THAT(runtime().updates, IsEmpty()) << "it has no id yet";

  const ContainerId id = node_.Created(slow, admission);
  EXPECT_THAT(runtime().history, ElementsAre(WithCpus(id, "0,3-7")));
  const test::AskedStart start(manager(), id);
  EXPECT_FALSE(start.answered()) << "its own placement is not in force yet";
  runtime().AnswerAll();
  EXPECT_TRUE(start.admitted());
}

// Resources that are added to a request without any would change more than its CPUs.
TEST_F(ResourceManagerTest, ACreationWithoutResourcesIsPlacedByAnUpdateBeforeItsStart) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  CreateRequest request = TestNode::Request(node_.AddPod("plain", kBestEffort), "plain", 0);
  request.has_resources = false;
  request.resources = {};
  const Admission admission = *manager().AdmitCreate(CreateRequest(request));
  EXPECT_TRUE(admission.adjustment.empty());
  const ContainerId plain = node_.Created(request, admission);
  EXPECT_THAT(runtime().history, ElementsAre(WithCpus(plain, "0,3-7")));
  const test::AskedStart start(manager(), plain);
  EXPECT_FALSE(start.answered()) << "on the CPUs of " << app.value();
  runtime().AnswerAll();
  EXPECT_TRUE(start.admitted());
  EXPECT_EQ(runtime().CpusOf(plain), "0,3-7");
}

TEST_F(ResourceManagerTest, AnUnknownSandboxIsTakenFromTheRequest) {
  Pod pod;
  pod.name = "early";
  pod.namespace_name = "ns";
  pod.qos = kGuaranteed;
  CreateRequest request = TestNode::Request(PodSandboxId("unseen"), "app", 1000);
  request.pod = pod;
  const Admission admission = *manager().AdmitCreate(CreateRequest(request));
  EXPECT_EQ(CpuList(admission.adjustment), "1");
  manager().CreateFailed(admission.key);
  EXPECT_EQ(manager().snapshot().FindPod(PodSandboxId("unseen")), nullptr);

  const Admission again = *manager().AdmitCreate(CreateRequest(request));
  node_.Created(request, again);
  EXPECT_NE(manager().snapshot().FindPod(PodSandboxId("unseen")), nullptr);
}

TEST_F(ResourceManagerTest, AContainerOfAnUnknownSandboxIsAdoptedAfterwards) {
  Pod pod;
  pod.id = PodSandboxId("unseen");
  pod.name = "hidden";
  pod.namespace_name = "ns";
  pod.qos = kGuaranteed;
  node_.runtime.held.pods.push_back(pod);
  const CreateRequest request = TestNode::Request(pod.id, "app", 2000);
  const Admission admission = *manager().AdmitCreate(CreateRequest(request));
  EXPECT_TRUE(admission.adjustment.empty());
  EXPECT_EQ(node_.KnownContainers(), 0u);
  const ContainerId id = node_.Created(request, admission);
  ASSERT_TRUE(node_.RunUntil([&] { return runtime().lists.size() == 1; }));
  runtime().AnswerList();
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(id), "1-2");
}

TEST_F(ResourceManagerTest, ARefusalAdvisesToWaitForRunningContainersOnly) {
  const auto refusal = [this](std::string_view name) {
    return std::string(Message(node_.Create(name, kGuaranteed, 9000).status()));
  };
  EXPECT_THAT(refusal("large"), testing::EndsWith("; container ns/large/large: no other container "
                                                  "has any of it: lower its request, or use a "
                                                  "larger node"));
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  EXPECT_THAT(refusal("again"), testing::EndsWith("it fits when others have ended, or on another "
                                                  "node"));
  manager().ContainerStopped(app);
  EXPECT_THAT(refusal("later"), testing::HasSubstr("no other container has any of it"))
      << "one that has exited holds nothing";
}

// Start

TEST_F(ResourceManagerTest, AStartWaitsUntilOthersHaveLeft) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  std::optional<Status> decided;
  const auto wait = manager().AdmitStart(app, [&](const Status& status) { decided = status; });
  EXPECT_NE(wait, nullptr);
  EXPECT_FALSE(decided.has_value());
  runtime().Answer(0);
  ASSERT_TRUE(decided.has_value());
  EXPECT_TRUE(decided->ok());
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
}

TEST_F(ResourceManagerTest, ARefusedStartNamesTheContainerInTheWay) {
  node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  const test::AskedStart start(manager(), app);
  runtime().Answer(0, Internal("the disk is on fire"));
  ASSERT_TRUE(node_.RunUntil([&] { return start.answered(); }));
  EXPECT_EQ(start.answer().code(), StatusCode::kFailedPrecondition);
  const std::string message(Message(start.answer()));
  EXPECT_THAT(message, StartsWith("cri-resmgr (first-fit): cannot start: after "));
  EXPECT_THAT(message, HasSubstr("; container ns/app/app: "));
  EXPECT_THAT(message,
              HasSubstr("container ns/shared/shared may still run on its exclusive CPUs 1-2"));
  EXPECT_THAT(message, HasSubstr("the disk is on fire"));
}

TEST_F(ResourceManagerTest, AFailedShrinkIsTriedAgainUntilItWorks) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  const test::AskedStart start(manager(), app);
  runtime().Answer(0, DeadlineExceeded("no answer"));
  ASSERT_TRUE(node_.RunUntil([&] { return !runtime().updates.empty(); }));
  runtime().Answer(0, DeadlineExceeded("no answer"));
  ASSERT_TRUE(node_.RunUntil([&] { return !runtime().updates.empty(); }));
  runtime().Answer(0);
  EXPECT_TRUE(start.admitted());
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
}

TEST_F(ResourceManagerTest, AWithdrawnStartIsForgotten) {
  node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  test::AskedStart start(manager(), app);
  start.Withdraw();
  runtime().AnswerAll();
  EXPECT_FALSE(start.answered());
  node_.Start(app);
}

TEST_F(ResourceManagerTest, AContainerThatDoesNotRunBlocksNoStart) {
  ASSERT_TRUE(node_.Create("idle", kBurstable, 100).ok());
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  EXPECT_EQ(runtime().updates.size(), 1u);
  node_.Start(app);
}

TEST_F(ResourceManagerTest, AStartingContainerBlocksOtherStarts) {
  const ContainerId shared = *node_.Create("shared", kBurstable, 100);
  bool admitted = false;
  EXPECT_EQ(manager().AdmitStart(shared, [&](const Status& status) { admitted = status.ok(); }),
            nullptr);
  EXPECT_TRUE(admitted);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  bool started = false;
  const auto wait = manager().AdmitStart(app, [&](const Status&) { started = true; });
  EXPECT_FALSE(started);
  manager().StartFailed(shared);
  EXPECT_TRUE(started);
}

TEST_F(ResourceManagerTest, AContainerThatTheRuntimeDoesNotListMayStart) {
  const test::AskedStart start(manager(), ContainerId("stranger"));
  EXPECT_FALSE(start.answered()) << "without asking the runtime";
  runtime().AnswerList();
  EXPECT_TRUE(start.admitted());
}

// Created by a call of a daemon that was killed, after this one had looked.
TEST_F(ResourceManagerTest, AContainerThatAppearedUnseenStartsByTheRules) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  RuntimeContainer late;
  late.id = ContainerId("late");
  late.pod_id = node_.AddPod("late", kBurstable);
  late.name = "late";
  late.resources = TestNode::Resources(100);
  late.resources.cpuset_cpus = "0-7";
  runtime().held.containers.push_back(late);
  const test::AskedStart start(manager(), late.id);
  runtime().AnswerList();
  EXPECT_FALSE(start.answered()) << "on the CPUs of another one";
  runtime().AnswerAll();
  EXPECT_TRUE(start.admitted());
  EXPECT_EQ(runtime().CpusOf(late.id), "0,3-7");
}

TEST_F(ResourceManagerTest, AWithdrawnStartOfAnUnknownContainerIsForgotten) {
  test::AskedStart start(manager(), ContainerId("stranger"));
  start.Withdraw();
  runtime().AnswerList();
  EXPECT_FALSE(start.answered());
}

// Stop, remove, restart

TEST_F(ResourceManagerTest, AStopReleasesAndOthersGrow) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  node_.Stop(app);
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
  ASSERT_NE(node_.Known(app), nullptr);
  EXPECT_EQ(node_.Known(app)->state, ContainerState::kExited);
  EXPECT_EQ(node_.Placed(app), "");
  node_.Remove(app);
  EXPECT_EQ(node_.Known(app), nullptr);
  EXPECT_THAT(runtime().updates, IsEmpty());
}

TEST_F(ResourceManagerTest, UnknownIdsAreIgnored) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  manager().ContainerStopped(ContainerId("x"));
  manager().ContainerRemoved(ContainerId("x"));
  manager().StartSucceeded(ContainerId("x"));
  manager().StartFailed(ContainerId("x"));
  manager().PodStopped(PodSandboxId("x"));
  manager().PodRemoved(PodSandboxId("x"));
  manager().CreateFailed(ContainerKey{12345});
  manager().UpdateSucceeded(Admission{});
  EXPECT_TRUE(manager().AdmitUpdate(ContainerId("x"), {})->adjustment.empty());
  EXPECT_EQ(node_.KnownContainers(), 1u);
  EXPECT_EQ(node_.Placed(shared), "0-7");
}

TEST_F(ResourceManagerTest, APodTakesItsContainersWithIt) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  const ContainerId a = *node_.Create(TestNode::Request(pod, "a", 1000));
  const ContainerId b = *node_.Create(TestNode::Request(pod, "b", 2000));
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,4-7");
  manager().PodStopped(pod);
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
  EXPECT_EQ(node_.Known(a)->state, ContainerState::kExited);
  manager().PodRemoved(pod);
  EXPECT_EQ(node_.Known(a), nullptr);
  EXPECT_EQ(node_.Known(b), nullptr);
  EXPECT_EQ(manager().snapshot().FindPod(pod), nullptr);
}

TEST_F(ResourceManagerTest, ANewAttemptTakesOverFromOneThatDiedUnseen) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  const ContainerId first = *node_.Create(TestNode::Request(pod, "app", 3000, 0));
  runtime().AnswerAll();
  node_.Start(first);
  node_.Crash(first);
  runtime().history.clear();

  const CreateRequest request = TestNode::Request(pod, "app", 3000, 1);
  const Admission admission = *manager().AdmitCreate(CreateRequest(request));
  EXPECT_EQ(CpuList(admission.adjustment), "1-3");
  const ContainerId second = node_.Created(request, admission);
  node_.Start(second);
  EXPECT_EQ(node_.Known(first)->state, ContainerState::kExited);
  EXPECT_THAT(runtime().history, IsEmpty()) << "no other container is touched";

  node_.Remove(first);
  EXPECT_EQ(node_.Exclusive(second), "1-3") << "attempts never touch each other";
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,4-7");
}

TEST_F(ResourceManagerTest, AFailedNewAttemptGivesTheCpusBack) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  const ContainerId first = *node_.Create(TestNode::Request(pod, "app", 3000, 0));
  runtime().AnswerAll();
  node_.Start(first);
  runtime().history.clear();
  const Admission admission = *manager().AdmitCreate(TestNode::Request(pod, "app", 3000, 1));
  EXPECT_EQ(node_.Exclusive(first), "") << "no CPU is granted twice";
  manager().CreateFailed(admission.key);
  EXPECT_EQ(node_.Exclusive(first), "1-3");
  EXPECT_EQ(node_.Known(first)->state, ContainerState::kRunning);
  EXPECT_THAT(runtime().history, IsEmpty());
  EXPECT_EQ(node_.Placed(shared), "0,4-7");
}

TEST_F(ResourceManagerTest, AFormerAttemptThatIsRemovedMeanwhileStaysAway) {
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  const ContainerId first = *node_.Create(TestNode::Request(pod, "app", 3000, 0));
  const Admission admission = *manager().AdmitCreate(TestNode::Request(pod, "app", 3000, 1));
  node_.Remove(first);
  manager().CreateFailed(admission.key);
  EXPECT_EQ(node_.KnownContainers(), 0u);
  EXPECT_THAT(policy().grants(), IsEmpty());
}

TEST_F(ResourceManagerTest, AnAttemptAfterAStopGetsTheSameCpus) {
  ASSERT_TRUE(node_.Create("other", kGuaranteed, 1000).ok());
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  const ContainerId blocker = *node_.Create("blocker", kGuaranteed, 1000);
  const ContainerId first = *node_.Create(TestNode::Request(pod, "app", 2000, 0));
  EXPECT_EQ(node_.Exclusive(first), "3-4");
  node_.Stop(first);
  node_.Stop(blocker);
  const ContainerId second = *node_.Create(TestNode::Request(pod, "app", 2000, 1));
  EXPECT_EQ(node_.Exclusive(second), "3-4");
}

TEST_F(ResourceManagerTest, ContainersBelongToTheirSandbox) {
  const PodSandboxId old_sandbox = node_.AddPod("web", kGuaranteed);
  const ContainerId old_app = *node_.Create(TestNode::Request(old_sandbox, "app", 2000, 0));
  const PodSandboxId new_sandbox = node_.AddPod("web", kGuaranteed);
  const ContainerId new_app = *node_.Create(TestNode::Request(new_sandbox, "app", 2000, 0));
  EXPECT_EQ(node_.Exclusive(old_app), "1-2");
  EXPECT_EQ(node_.Exclusive(new_app), "3-4");
  manager().PodRemoved(old_sandbox);
  EXPECT_EQ(node_.Exclusive(new_app), "3-4");
}

TEST_F(ResourceManagerTest, AnUpdateOfAContainerThatIsGoneReleasesIt) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  runtime().Remove(shared);
  runtime().AnswerAll();
  EXPECT_EQ(node_.Known(shared), nullptr);
}

// Faulty policies

TEST_F(ResourceManagerTest, ABrokenPlanIsRefusedAndForgotten) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  policy().spoil = [](Plan& plan) {
    for (PlacementChange& change : plan.changes)
      change.placement.cpus = CpuSet();
  };
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  const StatusOr<Admission> refused = manager().AdmitCreate(TestNode::Request(pod, "app", 2000));
  EXPECT_EQ(refused.status().code(), StatusCode::kInternal);
  policy().spoil = nullptr;
  EXPECT_EQ(node_.Placed(shared), "0-7");
  EXPECT_THAT(policy().grants(), IsEmpty()) << "the policy was made to forget it";
  EXPECT_THAT(runtime().history, IsEmpty());
  EXPECT_TRUE(manager().AdmitCreate(TestNode::Request(pod, "app", 2000)).ok());
}

TEST_F(ResourceManagerTest, ThousandsOfContainersLeaveNothingBehind) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  for (int i = 0; i < (test::kSanitized ? 2'000 : 10'000); ++i) {
    const PodSandboxId pod = node_.AddPod("web", i % 2 == 0 ? kGuaranteed : kBurstable);
    const ContainerId id = *node_.Create(TestNode::Request(pod, "app", 1000));
    runtime().AnswerAll();
    node_.Start(id);
    if (i % 3 == 0) node_.Stop(id);
    node_.Remove(id);
    manager().PodRemoved(pod);
    runtime().AnswerAll();
    runtime().held.pods.pop_back();
  }
  EXPECT_EQ(node_.KnownContainers(), 1u);
  EXPECT_THAT(policy().grants(), IsEmpty());
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
}

// Runtimes take any beginning of an id that only one container or pod sandbox has.

class AbbreviatedIdsTest : public test::ManagerFixture {
 protected:
  // The test begins after the list that follows each connect.
  AbbreviatedIdsTest() {
    EXPECT_TRUE(node_.AnswerNextList());
    EXPECT_TRUE(node_.RunUntil([] { return true; }));
  }
  // The beginning that only this id has.
  template <typename Id>
  static Id Short(const Id& id) {
    return Id(std::string(id.value()).substr(0, id.value().size() - 1));
  }
};

TEST_F(AbbreviatedIdsTest, AnUpdateIsPinned) {
  node_.Run("app", kGuaranteed, 2000);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  EXPECT_TRUE(manager().Knows(Short(shared)));
  LinuxResources all;
  all.cpuset_cpus = "0-7";
  const StatusOr<Admission> admission = manager().AdmitUpdate(Short(shared), all);
  ASSERT_TRUE(admission.ok()) << admission.status();
  EXPECT_EQ(CpuList(admission->adjustment), "0,3-7");
  manager().UpdateSucceeded(*admission);
}

TEST_F(AbbreviatedIdsTest, AStartWaitsAtTheGate) {
  node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  const test::AskedStart start(manager(), Short(app));
  EXPECT_FALSE(start.answered());
  runtime().AnswerAll();
  ASSERT_TRUE(start.admitted());
  manager().StartSucceeded(Short(app));
  EXPECT_EQ(node_.Known(app)->state, ContainerState::kRunning);
}

TEST_F(AbbreviatedIdsTest, AStopAndARemovalRelease) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  runtime().Find(app)->state = ContainerState::kExited;
  manager().ContainerStopped(Short(app));
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
  runtime().Remove(app);
  manager().ContainerRemoved(Short(app));
  EXPECT_EQ(node_.Known(app), nullptr);
  manager().ContainerRemoved(Short(shared));
  EXPECT_EQ(node_.KnownContainers(), 0u);
}

TEST_F(AbbreviatedIdsTest, AContainerIsMadeInThePodThatIsMeant) {
  const PodSandboxId pod = node_.AddPod("app", kGuaranteed);
  CreateRequest request = TestNode::Request(Short(pod), "app", 2000);
  Pod described;  // as clients describe it in each creation
  described.name = "app";
  request.pod = described;
  const Admission admission = *manager().AdmitCreate(CreateRequest(request));
  EXPECT_EQ(CpuList(admission.adjustment), "1-2");
  request.pod_id = pod;
  const ContainerId app = node_.Created(request, admission);
  EXPECT_EQ(node_.Known(app)->pod_id, pod);
  manager().PodStopped(Short(pod));
  EXPECT_EQ(node_.Placed(app), "");
  manager().PodRemoved(Short(pod));
  EXPECT_EQ(node_.KnownContainers(), 0u);
  EXPECT_EQ(manager().snapshot().FindPod(pod), nullptr);
}

TEST_F(AbbreviatedIdsTest, APodsValuesChange) {
  const PodSandboxId pod = node_.AddPod("app", kGuaranteed);
  LinuxResources resources;
  resources.cpu_shares = 512;
  manager().PodResourcesChanged(Short(pod), {}, resources);
  EXPECT_EQ(manager().snapshot().FindPod(pod)->resources.cpu_shares, 512);
}

TEST_F(AbbreviatedIdsTest, WhatSeveralBeginWithMeansNone) {
  const ContainerId one = node_.Run("app", kGuaranteed, 1000);
  const ContainerId other = node_.Run("apple", kGuaranteed, 1000);
  const ContainerId both("app");
  EXPECT_FALSE(manager().Knows(both));
  EXPECT_FALSE(manager().Knows(ContainerId("")));
  EXPECT_TRUE(manager().AdmitUpdate(both, TestNode::Resources(2000))->adjustment.empty());
  EXPECT_EQ(node_.Placed(one), "1");
  EXPECT_EQ(node_.Placed(other), "2");
}

TEST_F(AbbreviatedIdsTest, AWholeIdMeansItsContainerThoughOthersBeginWithIt) {
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  RuntimeContainer longer = *runtime().Find(app);
  longer.id = ContainerId(fmt::format("{}0", app.value()));
  longer.attempt = 7;
  runtime().held.containers.push_back(longer);
  node_.Reconnect();
  ASSERT_NE(node_.Known(longer.id), nullptr);
  manager().ContainerRemoved(app);
  EXPECT_EQ(node_.Known(app), nullptr);
  EXPECT_NE(node_.Known(longer.id), nullptr);
}

TEST_F(AbbreviatedIdsTest, ASuccessForAnUnknownIdListsAgain) {
  manager().ContainerStopped(ContainerId("x"));
  EXPECT_TRUE(node_.AnswerNextList());
  manager().PodRemoved(PodSandboxId("x"));
  EXPECT_TRUE(node_.AnswerNextList());
  manager().StartSucceeded(ContainerId("x"));
  EXPECT_TRUE(node_.AwaitList());
}

}  // namespace
}  // namespace resmgr
