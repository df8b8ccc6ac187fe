// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_stage.h"

#include <chrono>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/hooks/hook_view.h"
#include "pkg/hooks/testing/hook_node.h"
#include "test/support/status_matchers.h"

namespace resmgr::hooks {
namespace {

using test::Fails;
using testing::AllOf;
using testing::HasSubstr;

// The runtime has a pod "p1" with a container "c1".
class HookContainerTest : public HookStageTest {
 protected:
  HookContainerTest() {
    HavePod(PodNamed("web"), "p1");
    HaveContainer("c1", "p1");
  }
};

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

TEST_F(HookContainerTest, AnUpdateSendsOnlyWhatServersChanged) {
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

TEST_F(HookContainerTest, UpdatesAtTheSameTimeAreAllKnown) {
  const auto quota = StartUpdate("c1", {.cpu_quota = 70'000});
  LinuxResources sets;
  sets.cpuset_mems = "1";
  auto mems = Make(Operation::kUpdateContainerResources, "c1");
  mems->request.body = ContainerUpdate{
      .has_linux = true, .resources = sets, .annotations = {{"by", "the second one"}}};
  mems->details.unified.Set("memory.high", "100");
  mems->Start();
  // The daemon's own update.
  inventory_.SetValues(ContainerId("c1"), {.cpus = CpuSet{2, 3}});
  mems->Reply(0);
  quota->Reply(0);
  const HookContainerPtr container = stage_.view().FindContainer("c1");
  const api::LinuxContainerResources& has = container->request.container_resources();
  EXPECT_EQ(has.cpu_quota(), 70'000);
  EXPECT_EQ(has.cpuset_cpus(), "2-3");
  EXPECT_EQ(has.cpuset_mems(), "1");
  EXPECT_EQ(has.unified().at("memory.high"), "100");
  EXPECT_EQ(container->request.container_annotations().at("by"), "the second one");
}

TEST_F(HookContainerTest, ServersAreAskedBeforeAndToldAfterAStart) {
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

TEST_F(HookContainerTest, AStopThatFailedKeepsTheContainerAndTheOneThatSucceedsIsToldOnce) {
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

// Docker starts containers again that have ended.
TEST_F(HookContainerTest, EachStopOfAContainerThatIsStartedAgainIsTold) {
  HeldServer& server = AddServer("k.json", {HookPoint::kPostStopContainer});
  Started(Operation::kStopContainer, "c1")->Reply(0);
  Started(Operation::kStartContainer, "c1")->Reply(0);
  Started(Operation::kStopContainer, "c1")->Reply(0);
  Started(Operation::kStopContainer, "c1")->Reply(0);
  EXPECT_EQ(server.questions.size(), 2u);
}

// Docker's restart policies start containers again without a call of a client.
TEST_F(HookContainerTest, TheStopOfAContainerThatTheRuntimeStartedAgainIsTold) {
  HeldServer& server = AddServer("k.json", {HookPoint::kPostStopContainer});
  Started(Operation::kStopContainer, "c1")->Reply(0);
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kStarted, .id = "c1"});
  Started(Operation::kStopContainer, "c1")->Reply(0);
  EXPECT_EQ(server.questions.size(), 2u);
}

TEST_F(HookContainerTest, AStoppedPodIsToldOnceAndGoesWithItsRemoval) {
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

TEST_F(HookContainerTest, AnEventOfARemovalForgetsTheContainer) {
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kStopped, .id = "c1"});
  EXPECT_NE(stage_.view().FindContainer("c1"), nullptr);
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kDeleted, .id = "c1"});
  EXPECT_EQ(stage_.view().FindContainer("c1"), nullptr);
}

// Hook servers that fail, hang or end, clients that go away, and requests about unknown objects.
using HookFaultsTest = HookContainerTest;

std::string Shares(int64_t shares) {
  api::ContainerResourceHookResponse answer;
  answer.mutable_container_resources()->set_cpu_shares(shares);
  return answer.SerializeAsString();
}

TEST_F(HookFaultsTest, AServerThatMayNotFailRefusesWithHookAndFileAndCause) {
  HeldServer& server = AddServer("k.json", {HookPoint::kPreCreateContainer}, FailurePolicy::kFail);
  HeldServer& later = AddServer("z.json", {HookPoint::kPreCreateContainer});
  const auto create = StartCreate("p1");
  server.Answer(Unavailable("no socket"));
  ASSERT_TRUE(create->decided);
  EXPECT_THAT(*create->decided,
              Fails(StatusCode::kUnavailable, AllOf(HasSubstr("PreCreateContainer"),
                                                    HasSubstr("k.json"), HasSubstr("no socket"))));
  EXPECT_TRUE(later.questions.empty());
  EXPECT_EQ(clock_.timers(), 0u);
}

TEST_F(HookFaultsTest, AServerThatMayFailIsPassedOver) {
  HeldServer& server = AddServer("a.json", {HookPoint::kPreCreateContainer});
  HeldServer& later = AddServer("b.json", {HookPoint::kPreCreateContainer}, FailurePolicy::kFail);
  const auto create = StartCreate("p1");
  server.Answer(DeadlineExceeded("late"));
  later.Answer(Shares(9));
  ASSERT_TRUE(create->passed());
  EXPECT_EQ(create->values.cpu_shares, 9);
  EXPECT_EQ(stage_.ignored_failures(), 1u);
}

TEST_F(HookFaultsTest, AnAnswerThatCannotBeUsedIsAFailure) {
  HeldServer& broken = AddServer("a.json", {HookPoint::kPreCreateContainer});
  HeldServer& wrong = AddServer("b.json", {HookPoint::kPreCreateContainer}, FailurePolicy::kFail);
  const auto create = StartCreate("p1");
  broken.Answer(std::string("\xff\xff\xff"));
  api::ContainerResourceHookResponse answer;
  answer.mutable_container_resources()->set_cpuset_cpus("no cpus");
  wrong.AnswerWith(answer);
  ASSERT_TRUE(create->decided);
  EXPECT_THAT(*create->decided, Fails(StatusCode::kInvalidArgument, HasSubstr("b.json")));
  EXPECT_EQ(stage_.ignored_failures(), 1u);
}

TEST_F(HookFaultsTest, WhenTheTimeIsOverWhatWasDecidedSoFarCounts) {
  HeldServer& quick = AddServer("a.json", {HookPoint::kPreCreateContainer});
  HeldServer& hung = AddServer("b.json", {HookPoint::kPreCreateContainer});
  HeldServer& last = AddServer("c.json", {HookPoint::kPreCreateContainer});
  const auto create = StartCreate("p1");
  quick.Answer(Shares(9));
  clock_.Advance(stage_.hook_options().budget);
  ASSERT_TRUE(create->passed());
  EXPECT_EQ(create->values.cpu_shares, 9);
  EXPECT_TRUE(last.questions.empty());
  EXPECT_EQ(stage_.ignored_failures(), 2u);
  // The late answer changes nothing.
  hung.Answer(Shares(1));
  EXPECT_EQ(create->values.cpu_shares, 9);
  EXPECT_TRUE(last.questions.empty());
}

TEST_F(HookFaultsTest, WhenTheTimeIsOverAServerThatMayNotFailRefuses) {
  AddServer("a.json", {HookPoint::kPreStartContainer});
  AddServer("b.json", {HookPoint::kPreStartContainer}, FailurePolicy::kFail);
  const auto start = Started(Operation::kStartContainer, "c1");
  clock_.Advance(stage_.hook_options().budget);
  ASSERT_TRUE(start->decided);
  EXPECT_THAT(*start->decided, Fails(StatusCode::kDeadlineExceeded,
                                     AllOf(HasSubstr("PreStartContainer"), HasSubstr("b.json"))));
}

TEST_F(HookFaultsTest, AClientThatGoesAwayEndsTheRound) {
  HeldServer& server = AddServer("a.json", {HookPoint::kPreCreateContainer});
  HeldServer& later = AddServer("b.json", {HookPoint::kPreCreateContainer});
  auto create = StartCreate("p1");
  create.reset();
  EXPECT_EQ(stage_.calls(), 0u);
  EXPECT_EQ(clock_.timers(), 0u);
  server.Answer(Shares(9));
  EXPECT_TRUE(later.questions.empty());
}

TEST_F(HookFaultsTest, AClientThatGoesAwayWhileThePodIsSoughtEndsTheSearch) {
  HeldServer& server = AddServer("a.json", {HookPoint::kPreCreateContainer});
  auto create = StartCreate("unknown");
  create.reset();
  HeldRuntime::Answer(runtime_.asked_pods, Unavailable("away"));
  EXPECT_TRUE(server.questions.empty());
}

TEST_F(HookFaultsTest, AServerWhoseFileGoesWhileItIsAskedStillAnswers) {
  AddServer("a.json", {HookPoint::kPreCreateContainer});
  const std::weak_ptr<HeldServer> server = servers_.servers[0];
  const auto create = StartCreate("p1");
  servers_.servers.clear();
  ASSERT_FALSE(server.expired());
  server.lock()->Answer(Shares(9));
  ASSERT_TRUE(create->passed());
  EXPECT_EQ(create->values.cpu_shares, 9);
}

TEST_F(HookFaultsTest, AFailureAfterTheCallIsLoggedAndCounted) {
  HeldServer& server = AddServer("k.json", {HookPoint::kPostStopContainer}, FailurePolicy::kFail);
  EXPECT_TRUE(Started(Operation::kStopContainer, "c1")->Reply(0));
  server.Answer(Unavailable("gone"));
  EXPECT_EQ(stage_.ignored_failures(), 1u);
}

TEST_F(HookFaultsTest, NothingIsToldWhereTheOutcomeIsNotKnown) {
  HeldServer& server = AddServer("k.json", {HookPoint::kPostStopContainer});
  auto stop = Started(Operation::kStopContainer, "c1");
  stop.reset();
  EXPECT_TRUE(server.questions.empty());
  clock_.Advance(std::chrono::milliseconds(0));
  EXPECT_EQ(runtime_.lists.size(), 1u);
}

// The codes CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE.
TEST_F(HookFaultsTest, NothingIsToldWhereACallMayHaveTakenEffect) {
  HeldServer& server =
      AddServer("k.json", {HookPoint::kPostStartContainer, HookPoint::kPostStopContainer});
  for (const int code : {1, 4, 14}) {
    for (const Operation operation : {Operation::kStartContainer, Operation::kStopContainer}) {
      EXPECT_TRUE(Started(operation, "c1")->Reply(code)) << code;
      EXPECT_TRUE(server.questions.empty()) << code;
      clock_.Advance(std::chrono::milliseconds(0));
      EXPECT_EQ(runtime_.lists.size(), 1u) << code;
    }
  }
}

TEST_F(HookFaultsTest, APodThatDoesNotExistIsLeftToTheRuntime) {
  HeldServer& server = AddServer("k.json", {HookPoint::kPreCreateContainer}, FailurePolicy::kFail);
  const auto create = StartCreate("unknown");
  HeldRuntime::Answer(runtime_.asked_pods, NotFound("no such sandbox"));
  EXPECT_TRUE(create->passed());
  EXPECT_TRUE(server.questions.empty());
}

TEST_F(HookFaultsTest, AContainerThatCannotBeSoughtIsRefusedWhereAServerMayNotFail) {
  AddServer("k.json", {HookPoint::kPreStartContainer}, FailurePolicy::kFail);
  const auto start = Started(Operation::kStartContainer, "unknown");
  HeldRuntime::Answer(runtime_.asked_containers, Unavailable("away"));
  ASSERT_TRUE(start->decided);
  EXPECT_THAT(*start->decided, Fails(StatusCode::kUnavailable, HasSubstr("k.json")));
}

TEST_F(HookFaultsTest, ARuntimeThatHangsIsWaitedForNoLongerThanTheBudget) {
  AddServer("k.json", {HookPoint::kPreStartContainer});
  const auto start = Started(Operation::kStartContainer, "unknown");
  clock_.Advance(stage_.hook_options().budget);
  EXPECT_TRUE(start->passed());
  HeldRuntime::Answer(runtime_.asked_containers, Container("unknown", "p1"));
}

TEST_F(HookFaultsTest, AContainerThatWasNotKnownIsAskedAboutOnceItIs) {
  HeldServer& server = AddServer("k.json", {HookPoint::kPreUpdateContainerResources});
  LinuxResources wanted;
  wanted.cpu_quota = 4000;
  const auto update = StartUpdate("c2", wanted);
  HeldRuntime::Answer(runtime_.asked_containers, Container("c2", "p1"));
  const auto asked = server.Asked<api::ContainerResourceHookRequest>();
  EXPECT_EQ(asked.container_resources().cpu_quota(), 4000);
  EXPECT_EQ(asked.container_resources().cpu_shares(), 512);
  EXPECT_EQ(asked.pod_cgroup_parent(), "/kubepods/podweb");
  server.Answer(Shares(3));
  EXPECT_EQ(update->values.cpu_shares, 3);
}

TEST_F(HookFaultsTest, PodsOfAHandlerThatIsSkippedAreNotAskedAbout) {
  HookStage stage({.loop = loop_, .clock = clock_, .inventory = inventory_, .servers = servers_},
                  {.skip_handlers = {"kata"}});
  stage.Start();
  stage.OpenServers();
  pipeline_.Remove(stage_);
  pipeline_.Add(stage);
  HeldServer& server = AddServer("k.json", {HookPoint::kPreRunPodSandbox});
  Pod pod = PodNamed("web");
  pod.runtime_handler = "kata";
  EXPECT_TRUE(StartPod(pod)->passed());
  pod.runtime_handler = "runc";
  const auto run = StartPod(pod);
  EXPECT_FALSE(run->decided);
  EXPECT_EQ(server.questions.size(), 1u);
  pipeline_.Remove(stage);
}

TEST_F(HookFaultsTest, CallsWaitUntilItIsKnownWhichServersThereAre) {
  HookStage stage({.loop = loop_, .clock = clock_, .inventory = inventory_, .servers = servers_},
                  {});
  stage.Start();
  pipeline_.Remove(stage_);
  pipeline_.Add(stage);
  auto gone = StartPod(PodNamed("gone"));
  const auto run = StartPod(PodNamed("web"));
  EXPECT_FALSE(run->decided);
  gone.reset();
  HeldServer& server = AddServer("k.json", {HookPoint::kPreRunPodSandbox});
  stage.OpenServers();
  ASSERT_EQ(server.questions.size(), 1u);
  server.AnswerWith(api::PodSandboxHookResponse());
  EXPECT_TRUE(run->passed());
  pipeline_.Remove(stage);
}

TEST_F(HookFaultsTest, SwitchedOnAgainCallsWaitAgain) {
  HookStage stage({.loop = loop_, .clock = clock_, .inventory = inventory_, .servers = servers_},
                  {});
  pipeline_.Remove(stage_);
  pipeline_.Add(stage);
  stage.Start();
  stage.OpenServers();
  stage.Forget();
  EXPECT_TRUE(StartPod(PodNamed("between"))->passed()) << "a call under way does not wait";
  stage.Start();
  const auto run = StartPod(PodNamed("web"));
  EXPECT_FALSE(run->decided);
  stage.OpenServers();
  EXPECT_TRUE(run->passed());
  pipeline_.Remove(stage);
}

TEST_F(HookFaultsTest, AnUpdateWithoutLinuxResourcesPasses) {
  HeldServer& server = AddServer("k.json", {HookPoint::kPreUpdateContainerResources});
  auto update = Make(Operation::kUpdateContainerResources, "c1");
  update->request.body = ContainerUpdate{};
  update->Start();
  EXPECT_TRUE(update->passed());
  EXPECT_TRUE(server.questions.empty());
}

SandboxFacts SandboxOf(const std::string& id) {
  SandboxFacts facts;
  facts.pod.id = PodSandboxId(id);
  facts.pod.name = "pod-" + id;
  facts.pod.cgroup_parent = "/kubepods/" + id;
  facts.pod.labels = {{"app", id}};
  facts.pod.resources.cpu_shares = 100;
  return facts;
}

ContainerFacts ContainerOf(const std::string& id, const std::string& pod) {
  ContainerFacts facts;
  facts.container.id = ContainerId(id);
  facts.container.pod_id = PodSandboxId(pod);
  facts.container.name = "main";
  facts.container.attempt = 3;
  facts.container.resources.cpu_shares = 512;
  facts.details.environment = {{.name = "A", .value = "1"}};
  return facts;
}

class HookViewTest : public testing::Test {
 protected:
  HookViewTest() {
    view_.Attach();
    clock_.Advance(std::chrono::milliseconds(0));
  }

  // The runtime's answer to the list under way.
  void List(RuntimeAccess::Everything everything) {
    HeldRuntime::Answer(runtime_.lists, std::move(everything));
  }
  HookContainerPtr Listed(const SandboxFacts& sandbox, const ContainerFacts& facts) {
    List({.sandboxes = {sandbox}, .containers = {facts}});
    return view_.FindContainer(facts.container.id.value());
  }

  ManualClock clock_;
  HeldRuntime runtime_;
  Inventory inventory_{clock_, runtime_};
  HookView view_{inventory_};
};

TEST_F(HookViewTest, AContainersRequestHasWhatIsItsPods) {
  const HookContainerPtr container = Listed(SandboxOf("p"), ContainerOf("c", "p"));
  api::ContainerResourceHookRequest request;
  ASSERT_TRUE(request.ParseFromString(EncodedRequestOf(*container)));
  EXPECT_EQ(request.pod_meta().name(), "pod-p");
  EXPECT_EQ(request.pod_labels().at("app"), "p");
  EXPECT_EQ(request.pod_cgroup_parent(), "/kubepods/p");
  EXPECT_EQ(request.pod_resources().cpu_shares(), 100);
  EXPECT_EQ(request.container_meta().id(), "c");
  EXPECT_EQ(request.container_meta().attempt(), 3u);
  EXPECT_EQ(request.container_resources().cpu_shares(), 512);
  EXPECT_EQ(request.container_envs().at("A"), "1");
  // Only the pod's record has them.
  EXPECT_TRUE(container->request.pod_labels().empty());
}

TEST_F(HookViewTest, AContainerHasTheValuesOfTheLastUpdate) {
  const HookContainerPtr container = Listed(SandboxOf("p"), ContainerOf("c", "p"));
  inventory_.SetValues(ContainerId("c"), {.cpus = CpuSet{2, 3}, .cpu_quota = -1});
  inventory_.SetValues(ContainerId("c"), {.cpus = CpuSet{3}, .mems = NodeSet{0}});
  inventory_.SetValues(ContainerId("unknown"), {.cpus = CpuSet{1}});
  const api::LinuxContainerResources& has = container->request.container_resources();
  EXPECT_EQ(has.cpuset_cpus(), "3");
  EXPECT_EQ(has.cpuset_mems(), "0");
  EXPECT_EQ(has.cpu_quota(), -1);
  EXPECT_EQ(has.cpu_shares(), 512);
}

TEST_F(HookViewTest, AnUpdateWhileTheRuntimeListsIsNewerThanTheList) {
  inventory_.SetValues(ContainerId("c"), {.cpus = CpuSet{2, 3}});
  inventory_.SetValues(ContainerId("c"), {.cpu_shares = 99});
  const HookContainerPtr container = Listed(SandboxOf("p"), ContainerOf("c", "p"));
  const api::LinuxContainerResources& has = container->request.container_resources();
  EXPECT_EQ(has.cpuset_cpus(), "2-3");
  EXPECT_EQ(has.cpu_shares(), 99);
}

TEST_F(HookViewTest, WhatWasListedIsToldAsItWasRequested) {
  SandboxFacts sandbox = SandboxOf("p");
  sandbox.attempt = 2;
  ContainerFacts facts = ContainerOf("c", "p");
  facts.requested_environment = facts.details.environment;
  facts.details.environment.Add("PATH", "/of/the/image");
  api::ContainerResourceHookRequest request;
  ASSERT_TRUE(request.ParseFromString(EncodedRequestOf(*Listed(sandbox, facts))));
  EXPECT_EQ(request.pod_meta().attempt(), 2u);
  EXPECT_EQ(request.container_envs_size(), 1);
  EXPECT_EQ(request.container_envs().at("A"), "1");
}

TEST_F(HookViewTest, AListKeepsWhatIsKnown) {
  List({.sandboxes = {SandboxOf("kept")}, .containers = {}});
  view_.FindPod("kept")->request.set_cgroup_parent("/as-the-request-said");
  inventory_.Refresh();
  List({.sandboxes = {SandboxOf("kept")}, .containers = {ContainerOf("fresh", "kept")}});
  EXPECT_EQ(view_.FindPod("kept")->request.cgroup_parent(), "/as-the-request-said");
  EXPECT_NE(view_.FindContainer("fresh"), nullptr);
}

// The runtime lists an object, but does not answer for its status: for example its shim hangs.
TEST_F(HookViewTest, WhatIsListedWithoutItsStatusIsNotKnownYet) {
  SandboxFacts sandbox = SandboxOf("p");
  sandbox.status_missing = true;
  sandbox.pod.cgroup_parent.clear();
  ContainerFacts facts = ContainerOf("c", "p");
  facts.status_missing = true;
  facts.container.resources = {};
  facts.details = {};
  EXPECT_EQ(Listed(sandbox, facts), nullptr);
  EXPECT_EQ(view_.FindPod("p"), nullptr);
  EXPECT_NE(inventory_.FindContainer("c"), nullptr);
  inventory_.Refresh();
  const HookContainerPtr container = Listed(SandboxOf("p"), ContainerOf("c", "p"));
  ASSERT_NE(container, nullptr);
  api::ContainerResourceHookRequest request;
  ASSERT_TRUE(request.ParseFromString(EncodedRequestOf(*container)));
  EXPECT_EQ(request.pod_cgroup_parent(), "/kubepods/p");
  EXPECT_EQ(request.container_resources().cpu_shares(), 512);
  EXPECT_EQ(request.container_envs().at("A"), "1");
}

}  // namespace
}  // namespace resmgr::hooks
