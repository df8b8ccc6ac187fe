// SPDX-License-Identifier: Apache-2.0
// Hook servers that fail, hang or end, clients that go away, and requests about unknown objects.
#include <chrono>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/hooks/testing/hook_node.h"
#include "test/support/status_matchers.h"

namespace resmgr::hooks {
namespace {

using test::Fails;
using testing::AllOf;
using testing::HasSubstr;

class HookFaultsTest : public HookStageTest {
 protected:
  HookFaultsTest() {
    HavePod(PodNamed("web"), "p1");
    HaveContainer("c1", "p1");
  }
};

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

TEST_F(HookFaultsTest, AnUpdateWithoutLinuxResourcesPasses) {
  HeldServer& server = AddServer("k.json", {HookPoint::kPreUpdateContainerResources});
  auto update = Make(Operation::kUpdateContainerResources, "c1");
  update->request.body = ContainerUpdate{};
  update->Start();
  EXPECT_TRUE(update->passed());
  EXPECT_TRUE(server.questions.empty());
}

}  // namespace
}  // namespace resmgr::hooks
