// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_stage.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/hooks/testing/hook_node.h"
#include "test/support/status_matchers.h"

namespace resmgr::hooks {
namespace {

TEST_F(HookStageTest, APodIsChangedAsItsServerWantsAndIsRememberedOnSuccess) {
  HeldServer& server = AddServer("k.json", {HookPoint::kPreRunPodSandbox});
  const auto run = StartPod(PodNamed("web"));
  EXPECT_EQ(server.Asked<api::PodSandboxHookRequest>().pod_meta().name(), "web");
  EXPECT_FALSE(run->decided);
  api::PodSandboxHookResponse answer;
  (*answer.mutable_annotations())["qos"] = "LS";
  answer.set_cgroup_parent("/other");
  server.AnswerWith(answer);
  ASSERT_TRUE(run->passed());
  EXPECT_EQ(run->wide->cgroup_parent, "/other");
  EXPECT_EQ(run->wide->annotations.Find("qos")->value, "LS");
  EXPECT_EQ(inventory_.pods().size() + inventory_.containers().size(), 0u);
  EXPECT_TRUE(run->Reply(0, "p1"));
  ASSERT_NE(stage_.view().FindPod("p1"), nullptr);
  EXPECT_EQ(stage_.view().FindPod("p1")->request.annotations().at("qos"), "LS");
}

TEST_F(HookStageTest, NothingIsRememberedOfWhatTheRuntimeRefused) {
  const auto run = StartPod(PodNamed("web"));
  run->Reply(13);
  EXPECT_EQ(inventory_.pods().size() + inventory_.containers().size(), 0u);
}

TEST_F(HookStageTest, EachServerSeesWhatThoseBeforeItChangedAndTheLaterOneCounts) {
  HavePod(PodNamed("web"), "p1");
  HeldServer& first = AddServer("a.json", {HookPoint::kPreCreateContainer});
  HeldServer& second = AddServer("b.json", {HookPoint::kPreCreateContainer});
  const auto create = StartCreate("p1");
  EXPECT_TRUE(second.questions.empty());
  api::ContainerResourceHookResponse answer;
  answer.mutable_container_resources()->set_cpu_shares(100);
  answer.mutable_container_resources()->set_cpu_quota(5000);
  first.AnswerWith(answer);
  const auto asked = second.Asked<api::ContainerResourceHookRequest>();
  EXPECT_EQ(asked.container_resources().cpu_shares(), 100);
  EXPECT_EQ(asked.pod_labels().at("app"), "web");
  EXPECT_EQ(asked.pod_cgroup_parent(), "/kubepods/podweb");
  answer.mutable_container_resources()->set_cpu_shares(200);
  answer.mutable_container_resources()->clear_cpu_quota();
  second.AnswerWith(answer);
  ASSERT_TRUE(create->passed());
  EXPECT_EQ(create->values.cpu_shares, 200);
  EXPECT_EQ(create->values.cpu_quota, 5000);
  create->Reply(0, "c1");
  const HookContainerPtr container = stage_.view().FindContainer("c1");
  ASSERT_NE(container, nullptr);
  EXPECT_EQ(container->request.container_resources().cpu_shares(), 200);
  const std::vector<FieldOwner>& owners = pipeline_.owners().Of(ContainerId("c1"));
  EXPECT_EQ(owners.size(), 2u);
  for (const FieldOwner& owner : owners) {
    EXPECT_EQ(owner.plugin, owner.change.field == Field::kCpuShares ? "b.json" : "a.json");
  }
}

TEST_F(HookStageTest, AServerThatEchoesClearsASetByLeavingItOut) {
  HavePod(PodNamed("web"), "p1");
  HeldServer& server = AddServer("k.json", {HookPoint::kPreCreateContainer}, FailurePolicy::kIgnore,
                                 AnswerStyle::kEcho);
  LinuxResources resources;
  resources.cpuset_cpus = "0-3";
  resources.cpuset_mems = "0";
  const auto create = StartCreate("p1", resources);
  api::ContainerResourceHookResponse answer;
  *answer.mutable_container_resources() =
      server.Asked<api::ContainerResourceHookRequest>().container_resources();
  answer.mutable_container_resources()->clear_cpuset_cpus();
  server.AnswerWith(answer);
  ASSERT_TRUE(create->passed());
  ASSERT_TRUE(create->wide);
  EXPECT_TRUE(create->wide->clear_cpus);
  EXPECT_FALSE(create->wide->clear_mems);
  EXPECT_TRUE(create->values.empty());
}

TEST_F(HookStageTest, APodWithTheSkipKeyIsNotAskedAboutAndIsRememberedAllTheSame) {
  HeldServer& server = AddServer("k.json",
                                 {HookPoint::kPreRunPodSandbox, HookPoint::kPreCreateContainer,
                                  HookPoint::kPostStopPodSandbox},
                                 FailurePolicy::kFail);
  Pod pod = PodNamed("web");
  pod.annotations = {{"runtimeproxy.koordinator.sh/skip-hookserver", "true"}};
  const auto run = StartPod(pod);
  ASSERT_TRUE(run->passed());
  run->Reply(0, "p1");
  const auto create = StartCreate("p1");
  ASSERT_TRUE(create->passed());
  create->Reply(0, "c1");
  EXPECT_NE(stage_.view().FindContainer("c1"), nullptr);
  Started(Operation::kStopPodSandbox, "p1")->Reply(0);
  EXPECT_TRUE(server.questions.empty());
  EXPECT_EQ(clock_.timers(), 0u);
}

TEST_F(HookStageTest, AnotherValueOfTheSkipKeySkipsNothing) {
  HeldServer& server = AddServer("k.json", {HookPoint::kPreRunPodSandbox});
  Pod pod = PodNamed("web");
  pod.labels = {{"runtimeproxy.koordinator.sh/skip-hookserver", "false"}};
  const auto run = StartPod(pod);
  EXPECT_EQ(server.questions.size(), 1u);
}

TEST_F(HookStageTest, AnUpdateSendsOnlyWhatServersChanged) {
  HavePod(PodNamed("web"), "p1");
  HaveContainer("c1", "p1");
  HeldServer& server = AddServer("k.json", {HookPoint::kPreUpdateContainerResources},
                                 FailurePolicy::kIgnore, AnswerStyle::kEcho);
  LinuxResources wanted;
  wanted.cpuset_cpus = "4-5";
  const auto update = StartUpdate("c1", wanted);
  const auto asked = server.Asked<api::ContainerResourceHookRequest>();
  EXPECT_EQ(asked.container_meta().id(), "c1");
  EXPECT_EQ(asked.container_resources().cpuset_cpus(), "4-5");
  EXPECT_EQ(asked.container_resources().cpu_shares(), 512);
  EXPECT_EQ(asked.pod_cgroup_parent(), "/kubepods/podweb");
  api::ContainerResourceHookResponse answer;
  *answer.mutable_container_resources() = asked.container_resources();
  answer.mutable_container_resources()->set_cpu_quota(70'000);
  server.AnswerWith(answer);
  ASSERT_TRUE(update->passed());
  EXPECT_EQ(update->values, (ResourceValues{.cpu_quota = 70'000}));
  EXPECT_FALSE(update->wide);
  // Only a success changes the data.
  const HookContainerPtr container = stage_.view().FindContainer("c1");
  EXPECT_EQ(container->request.container_resources().cpuset_cpus(), "0-3");
  update->Reply(0);
  EXPECT_EQ(container->request.container_resources().cpuset_cpus(), "4-5");
  EXPECT_EQ(container->request.container_resources().cpu_quota(), 70'000);
}

TEST_F(HookStageTest, ServersAreAskedBeforeAndToldAfterAStart) {
  HavePod(PodNamed("web"), "p1");
  HaveContainer("c1", "p1");
  HeldServer& server =
      AddServer("k.json", {HookPoint::kPreStartContainer, HookPoint::kPostStartContainer});
  const auto start = Started(Operation::kStartContainer, "c1");
  api::ContainerResourceHookResponse answer;
  answer.mutable_container_resources()->set_cpu_shares(7);
  server.AnswerWith(answer);
  ASSERT_TRUE(start->passed());
  EXPECT_TRUE(start->values.empty());
  EXPECT_TRUE(server.questions.empty());
  // The reply does not wait for the servers.
  EXPECT_TRUE(start->Reply(0));
  ASSERT_EQ(server.questions.size(), 1u);
  EXPECT_EQ(server.questions[0].point, HookPoint::kPostStartContainer);
  // A request to start has no place for changes, and a later request does not get them either.
  EXPECT_EQ(server.Asked<api::ContainerResourceHookRequest>().container_resources().cpu_shares(),
            512);
}

TEST_F(HookStageTest, AStopThatFailedKeepsTheContainerAndTheOneThatSucceedsIsToldOnce) {
  HavePod(PodNamed("web"), "p1");
  HaveContainer("c1", "p1");
  HeldServer& server = AddServer("k.json", {HookPoint::kPostStopContainer});
  Started(Operation::kStopContainer, "c1")->Reply(13);
  EXPECT_TRUE(server.questions.empty());
  EXPECT_NE(stage_.view().FindContainer("c1"), nullptr);
  EXPECT_TRUE(Started(Operation::kStopContainer, "c1")->Reply(0));
  EXPECT_TRUE(Started(Operation::kStopContainer, "c1")->Reply(0));
  ASSERT_EQ(server.questions.size(), 1u);
  EXPECT_EQ(server.Asked<api::ContainerResourceHookRequest>().container_meta().id(), "c1");
  Started(Operation::kRemoveContainer, "c1")->Reply(0);
  EXPECT_EQ(stage_.view().FindContainer("c1"), nullptr);
}

TEST_F(HookStageTest, AStoppedPodIsToldOnceAndGoesWithItsRemoval) {
  HavePod(PodNamed("web"), "p1");
  HaveContainer("c1", "p1");
  HeldServer& server = AddServer("k.json", {HookPoint::kPostStopPodSandbox});
  Started(Operation::kStopPodSandbox, "p1")->Reply(0);
  Started(Operation::kStopPodSandbox, "p1")->Reply(0);
  ASSERT_EQ(server.questions.size(), 1u);
  EXPECT_EQ(server.Asked<api::PodSandboxHookRequest>().pod_meta().name(), "web");
  Started(Operation::kRemovePodSandbox, "p1")->Reply(0);
  EXPECT_EQ(inventory_.pods().size() + inventory_.containers().size(), 0u);
}

TEST_F(HookStageTest, APodsNewResourcesAreToldFromThenOn) {
  HavePod(PodNamed("web"), "p1");
  auto update = Make(Operation::kUpdatePodSandboxResources, "p1");
  PodUpdate changes;
  changes.resources.cpu_shares = 77;
  update->request.body = changes;
  update->Start();
  update->Reply(0);
  EXPECT_EQ(stage_.view().FindPod("p1")->request.resources().cpu_shares(), 77);
  // The answer of a runtime without this call.
  update = Make(Operation::kUpdatePodSandboxResources, "p1");
  changes.resources.cpu_shares = 88;
  update->request.body = changes;
  update->Start();
  constexpr int kUnimplemented = 12;
  update->Reply(kUnimplemented);
  EXPECT_EQ(stage_.view().FindPod("p1")->request.resources().cpu_shares(), 88);
}

TEST_F(HookStageTest, ContainersThatEndedByThemselvesDoNotStay) {
  HavePod(PodNamed("web"), "p1");
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = "c" + std::to_string(i);
    StartCreate("p1")->Reply(0, id);
    Started(Operation::kRemoveContainer, id)->Reply(0);
  }
  EXPECT_EQ(inventory_.pods().size() + inventory_.containers().size(), 1u);
}

TEST_F(HookStageTest, AnEventOfARemovalForgetsTheContainer) {
  HavePod(PodNamed("web"), "p1");
  HaveContainer("c1", "p1");
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kStopped, .id = "c1"});
  EXPECT_NE(stage_.view().FindContainer("c1"), nullptr);
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kDeleted, .id = "c1"});
  EXPECT_EQ(stage_.view().FindContainer("c1"), nullptr);
}

}  // namespace
}  // namespace resmgr::hooks
