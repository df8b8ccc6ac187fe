// SPDX-License-Identifier: Apache-2.0
// Plugins that are slow, broken or too many, and their effect on others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/bounded_message.h"
#include "pkg/nri/testing/host_fixture.h"
#include "pkg/ttrpc/frame.h"
#include "test/support/wait.h"

namespace resmgr::nri {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using HostFaultsTest = test::HostFixture;

TEST_F(HostFaultsTest, AHangCostsOneTimeout) {
  options.strikes = 0;
  const auto plugin = Ready();
  PluginPort& port = *listener.ready[0];
  plugin->Hang();
  Created first;
  Created waiting;
  Answer<api::StopContainerResponse> stopped;
  Create(port, first, milliseconds(20));
  Create(port, waiting);
  ASSERT_TRUE(RunUntil([&] { return first.has_value(); }));
  EXPECT_EQ(first->status().code(), StatusCode::kDeadlineExceeded);
  // Waiting and new questions fail at once, without their own time-outs.
  EXPECT_EQ(waiting->status().code(), StatusCode::kDeadlineExceeded);
  Created next;
  Create(port, next);
  EXPECT_EQ(next->status(), DeadlineExceeded("it has not answered CreateContainer yet"));
  port.Ask(api::EVENT_STOP_CONTAINER,
           test::About<api::StopContainerRequest>("p", "old").SerializeAsString(), kPatience,
           Into(stopped));
  EXPECT_EQ(stopped->status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(plugin->told, SizeIs(3));

  // The late answer frees the plugin. It gets the notices, but not the requests that were decided.
  plugin->Release();
  ASSERT_TRUE(RunUntil([&] { return plugin->told.size() == 4; }));
  EXPECT_EQ(plugin->told.back(), "StopContainer p/old");
  const auto after = AskCreate(port);
  EXPECT_TRUE(after.ok());
  EXPECT_THAT(plugin->told, SizeIs(5));
  EXPECT_THAT(listener.ready, SizeIs(1));
}

TEST_F(HostFaultsTest, OneThatNeverAnswersEnds) {
  options.strikes = 3;
  const auto plugin = Ready();
  plugin->Hang();
  PluginPort& port = *listener.ready[0];
  const auto answer = AskCreate(port, milliseconds(20));
  EXPECT_EQ(answer.status().code(), StatusCode::kDeadlineExceeded);
  // These fail at once, and also count as late once their own time is over.
  const auto begin = EventLoop::Clock::now();
  Created second;
  Created third;
  Create(port, second, milliseconds(60));
  Create(port, third, milliseconds(20));
  EXPECT_TRUE(second.has_value() && third.has_value());
  ASSERT_TRUE(RunUntil([&] { return plugin->lost.has_value(); }));
  EXPECT_GE(EventLoop::Clock::now() - begin, milliseconds(60));
  EXPECT_THAT(listener.told.back(), HasSubstr("3 answers in a row were late"));
}

TEST_F(HostFaultsTest, OneLateAnswerIsOneStrike) {
  options.strikes = 3;
  const auto plugin = Ready();
  plugin->Hang();
  Created answer;
  Create(*listener.ready[0], answer, milliseconds(20));
  resmgr::test::RunFor(loop, milliseconds(200));
  EXPECT_FALSE(plugin->lost);
}

// The plugin's own clock may be the first to report the time-out.
TEST_F(HostFaultsTest, LateAnswersInARowEndIt) {
  options.strikes = 2;
  const auto plugin = Ready();
  PluginPort& port = *listener.ready[0];
  Status next = OkStatus();
  plugin->create =
      [&](const api::CreateContainerRequest&) -> StatusOr<api::CreateContainerResponse> {
    if (!next.ok()) return next;
    return api::CreateContainerResponse();
  };
  const auto ask = [&](const Status& answered) {
    Created answer;
    next = answered;
    Create(port, answer);
    EXPECT_TRUE(RunUntil([&] { return answer.has_value(); }));
    EXPECT_EQ(answer->status(), answered);
  };
  const Status late = DeadlineExceeded("mine");
  // An answer in time resets the count, even a refusal.
  ask(late);
  ask(OkStatus());
  ask(late);
  ask(Internal("no"));
  ask(late);
  EXPECT_THAT(listener.ready, SizeIs(1));
  ask(late);
  EXPECT_THAT(listener.ready, IsEmpty());
  EXPECT_EQ(host().plugins()[0].state, PluginView::State::kFailed);
}

TEST_F(HostFaultsTest, StrikesChangeWhileItIsConnected) {
  options.strikes = 5;
  const auto plugin = Ready();
  plugin->create = [](const api::CreateContainerRequest&) { return DeadlineExceeded("mine"); };
  const auto ask = [&] { const auto answer = AskCreate(*listener.ready[0]); };
  ask();
  ask();
  EXPECT_THAT(listener.ready, SizeIs(1));
  HostOptions changed = options;
  changed.strikes = 2;
  host().Configure(changed);
  EXPECT_THAT(listener.ready, SizeIs(1)) << "it was not late by the new ones";
  ask();
  EXPECT_THAT(listener.ready, IsEmpty());
}

TEST_F(HostFaultsTest, WhatWaitsIsBounded) {
  const auto plugin = Ready();
  plugin->Hang();
  PluginPort& port = *listener.ready[0];
  size_t open = 0;
  Status last;
  for (size_t i = 0; i < QuestionQueue::kMostQuestions + 2; ++i) {
    ++open;
    port.Ask<api::CreateContainerResponse>(
        api::EVENT_CREATE_CONTAINER, {}, kPatience,
        [&](const StatusOr<api::CreateContainerResponse>& answer) {
          --open;
          last = answer.status();
        });
  }
  EXPECT_EQ(open, QuestionQueue::kMostQuestions + 1);
  EXPECT_EQ(last.code(), StatusCode::kDeadlineExceeded);
  plugin->Die();
  ASSERT_TRUE(RunUntil([&] { return open == 0; }));
  EXPECT_EQ(last.code(), StatusCode::kUnavailable);
}

// It would not hear of an end, for example. When it connects again it gets the state of that time.
TEST_F(HostFaultsTest, OneForWhichTooManyEventsWaitEnds) {
  options.strikes = 0;
  const auto plugin = Ready();
  plugin->Hang();
  PluginPort& port = *listener.ready[0];
  std::optional<Status> last;
  for (size_t i = 0; i <= QuestionQueue::kMostQuestions; ++i)
    Notify(port, api::EVENT_START_CONTAINER, last);
  EXPECT_FALSE(last.has_value()) << "one is asked, and the others wait";
  Notify(port, api::EVENT_START_CONTAINER, last);
  EXPECT_EQ(last->code(), StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(RunUntil([&] { return plugin->lost.has_value(); }));
  EXPECT_THAT(listener.told.back(), HasSubstr("it is too slow: 256 questions wait for it"));
}

// A boot brings more events than may wait for a ready plugin, and a plugin that synchronizes is not
// slow: if it were ended, the next inventory would take as long, beside as many events.
TEST_F(HostFaultsTest, AnyNumberOfEventsWaitsForTheEndOfTheInventory) {
  constexpr size_t kEvents = 4 * QuestionQueue::kMostQuestions;
  options.strikes = 0;
  const auto plugin = Connect({.hangs_at_inventory = true});
  ASSERT_TRUE(RunUntil([&] { return plugin->synchronized; }));
  PluginPort& port = *listener.synchronizing;
  const size_t before = plugin->told.size();
  std::optional<Status> last;
  for (size_t i = 0; i < kEvents; ++i)
    Notify(port, api::EVENT_START_CONTAINER, last);
  ASSERT_FALSE(last.has_value());
  plugin->Release();
  ASSERT_TRUE(RunUntil([&] { return !listener.ready.empty() || plugin->lost.has_value(); }));
  // The ready plugin has the usual room for more.
  for (size_t i = 0; i < QuestionQueue::kMostQuestions; ++i)
    Notify(port, api::EVENT_START_CONTAINER, last);
  ASSERT_TRUE(RunUntil([&] {
    return plugin->told.size() == before + kEvents + QuestionQueue::kMostQuestions ||
           plugin->lost.has_value();
  }));
  EXPECT_THAT(listener.ready, SizeIs(1));

  plugin->Hang();
  for (size_t i = 0; i <= QuestionQueue::kMostQuestions; ++i)
    Notify(port, api::EVENT_START_CONTAINER, last);
  EXPECT_THAT(listener.ready, SizeIs(1));
  Notify(port, api::EVENT_START_CONTAINER, last);
  EXPECT_TRUE(RunUntil([&] { return listener.ready.empty(); }));
}

TEST_F(HostFaultsTest, EventsDuringTheInventoryTakeBoundedMemory) {
  constexpr size_t kLong = size_t{1} << 20;
  const auto plugin = Connect({.hangs_at_inventory = true});
  ASSERT_TRUE(RunUntil([&] { return plugin->synchronized; }));
  auto event = test::EventOf(api::EVENT_START_CONTAINER, "p", "c");
  event.mutable_container()->add_args(std::string(kLong, 'x'));
  for (size_t bytes = 0; bytes < QuestionQueue::kMostBytes; bytes += kLong)
    listener.synchronizing->Notify(event, kPatience, [](const Status&) {});
  ASSERT_TRUE(RunUntil([&] { return plugin->lost.has_value(); }));
  EXPECT_THAT(listener.told.back(), HasSubstr("it is too slow: 15 questions wait for it"));
}

// Its late answer does not make room for those that wait.
TEST_F(HostFaultsTest, OneThatHangsEndsWhenTooManyEventsWait) {
  options.strikes = 0;
  const auto plugin = Ready();
  plugin->Hang();
  PluginPort& port = *listener.ready[0];
  EXPECT_EQ(AskCreate(port, milliseconds(20)).status().code(), StatusCode::kDeadlineExceeded);
  std::optional<Status> last;
  for (size_t i = 0; i < QuestionQueue::kMostQuestions; ++i)
    Notify(port, api::EVENT_START_CONTAINER, last);
  EXPECT_THAT(listener.ready, SizeIs(1));
  Notify(port, api::EVENT_START_CONTAINER, last);
  EXPECT_TRUE(RunUntil([&] { return listener.ready.empty(); }));
}

TEST_F(HostFaultsTest, AQuestionThatIsTooLongIsNotAsked) {
  const auto plugin = Ready();
  auto request = test::About<api::CreateContainerRequest>("p", "c");
  request.mutable_container()->add_args(std::string(ttrpc::kLongestMessage, 'x'));
  Created answer;
  listener.ready[0]->Ask(api::EVENT_CREATE_CONTAINER, request.SerializeAsString(), kPatience,
                         Into(answer));
  ASSERT_TRUE(RunUntil([&] { return answer.has_value(); }));
  EXPECT_EQ(answer->status().code(), StatusCode::kUnavailable);
  const auto next = AskCreate(*listener.ready[0]);
  EXPECT_TRUE(next.ok());
}

TEST_F(HostFaultsTest, GarbageEndsOnlyTheOneThatTalksIt) {
  const auto healthy = Ready({.name = "healthy"});
  PluginPort& port = *listener.ready[0];
  const auto talks = Ready({.name = "talks"});
  const auto breaks = Ready({.name = "breaks"});
  talks->TalkGarbage();
  breaks->BreakTrunk();
  Created answer;
  Create(*listener.ready[1], answer);
  ASSERT_TRUE(RunUntil([&] { return listener.ready.size() == 1; }));
  EXPECT_EQ(answer->status().code(), StatusCode::kUnavailable);
  const auto next = AskCreate(port);
  EXPECT_TRUE(next.ok());
  for (const PluginView& plugin : host().plugins()) {
    EXPECT_EQ(plugin.state,
              plugin.name == "healthy" ? PluginView::State::kReady : PluginView::State::kFailed);
  }
}

TEST_F(HostFaultsTest, AnAnswerThatIsTooLongEndsIt) {
  const auto healthy = Ready({.name = "healthy"});
  const auto plugin = Ready();
  // A Go plugin cannot send this: its library ends the connection instead.
  plugin->SendLongAnswers();
  const auto answer = AskCreate(*listener.ready[1]);
  EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(listener.ready, SizeIs(1));
  EXPECT_THAT(listener.told.back(), HasSubstr("lost 10-fake: there is no room for a response"));
}

TEST_F(HostFaultsTest, AnAnswerOfTheMostBytesIsTaken) {
  const auto plugin = Ready();
  plugin->create = [](const api::CreateContainerRequest&) {
    api::CreateContainerResponse response;
    for (int i = 0; i < 20'000; ++i)
      response.add_update();
    response.mutable_adjust()->add_args(std::string(ttrpc::kLongestMessage - 100'000, 'x'));
    return response;
  };
  const auto answer = AskCreate(*listener.ready[0]);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->update_size(), 20'000);
}

TEST_F(HostFaultsTest, AnAnswerOfTooManyFieldsEndsIt) {
  const auto healthy = Ready({.name = "healthy"});
  const auto plugin = Ready();
  plugin->create = [](const api::CreateContainerRequest&) {
    api::CreateContainerResponse response;
    for (size_t i = 0; i <= kMostFields; ++i)
      response.add_update();
    return response;
  };
  const auto answer = AskCreate(*listener.ready[1]);
  EXPECT_EQ(answer.status(), Unavailable("its answer to CreateContainer: it has more than 65536 "
                                         "fields, or is not protobuf"));
  EXPECT_THAT(listener.ready, SizeIs(1));
}

TEST_F(HostFaultsTest, ChangesOfTooManyFieldsAreRefused) {
  const auto plugin = Ready();
  plugin->UpdateContainers(std::vector<api::ContainerUpdate>(kMostFields + 1));
  ASSERT_TRUE(RunUntil([&] { return plugin->update_answers.size() == 1; }));
  EXPECT_EQ(plugin->update_answers[0].status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(listener.waiting, IsEmpty());
  EXPECT_THAT(listener.ready, SizeIs(1));
}

TEST_F(HostFaultsTest, AFloodOfChangesIsRefusedAndAQuestionAnsweredAllTheSame) {
  const auto plugin = Ready();
  const auto begin = std::chrono::steady_clock::now();
  plugin->UpdateContainers({}, 3 * PluginSession::kMostUpdateRequests);
  const auto answer = AskCreate(*listener.ready[0]);
  EXPECT_TRUE(answer.ok());
  ASSERT_TRUE(RunUntil(
      [&] { return plugin->update_answers.size() == 2 * PluginSession::kMostUpdateRequests; }));
  // A plugin that asks again when it is refused does so ten times a second.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, PluginSession::kRefusalDelay);
  for (const auto& refused : plugin->update_answers)
    EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  ASSERT_THAT(listener.waiting, SizeIs(PluginSession::kMostUpdateRequests));
  // The refusals are counted as failures.
  EXPECT_EQ(host().plugins()[0].failures, 2 * PluginSession::kMostUpdateRequests);
  EXPECT_THAT(host().plugins()[0].last_error, HasSubstr("8 requests are not answered yet"));

  // The answers list the failed updates, and make room.
  api::ContainerUpdate failed;
  failed.set_container_id("gone");
  plugin->update_answers.clear();
  listener.waiting[0]({failed});
  ASSERT_TRUE(RunUntil([&] { return plugin->update_answers.size() == 1; }));
  ASSERT_TRUE(plugin->update_answers[0].ok());
  EXPECT_EQ(plugin->update_answers[0]->failed(0).container_id(), "gone");
  plugin->UpdateContainers({});
  ASSERT_TRUE(
      RunUntil([&] { return listener.waiting.size() == PluginSession::kMostUpdateRequests + 1; }));
  // A plugin that is lost meanwhile gets no answer.
  plugin->Die();
  ASSERT_TRUE(RunUntil([&] { return listener.ready.empty(); }));
  listener.waiting.back()({});
}

TEST_F(HostFaultsTest, AFloodingPluginHearsOfEvents) {
  const auto plugin = Ready();
  plugin->UpdateContainers({}, 2 * PluginSession::kMostRefusals);
  ASSERT_TRUE(RunUntil([&] { return host().plugins()[0].failures > 0; }));
  resmgr::test::RunFor(loop, milliseconds(200));
  std::optional<Status> answer;
  Notify(*listener.ready[0], api::EVENT_START_CONTAINER, answer);
  ASSERT_TRUE(answer.has_value()) << "calls do not wait for it";
  EXPECT_EQ(answer->code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(ttrpc::test::RunUntil(
      loop, [&] { return plugin->told.back() == "StartContainer p/c"; }, kPatience))
      << plugin->told.back();
  EXPECT_THAT(listener.ready, SizeIs(1));
}

// Refused requests do not take the room for the plugin's answers.
TEST_F(HostFaultsTest, AFloodOfLongChangesIsRefusedAndAQuestionAnsweredAllTheSame) {
  const auto plugin = Ready();
  plugin->UpdateContainers({}, PluginSession::kMostUpdateRequests);
  ASSERT_TRUE(
      RunUntil([&] { return listener.waiting.size() == PluginSession::kMostUpdateRequests; }));
  api::ContainerUpdate update;
  update.set_container_id(std::string(size_t{1} << 20, 'c'));
  // Each round sends as many as the plugin's own socket takes; all rounds end within the delay.
  for (uint64_t sent = 8; sent <= 24; sent += 8) {
    plugin->UpdateContainers({update}, 8);
    ASSERT_TRUE(RunUntil([&] { return host().plugins()[0].failures == sent; }));
  }
  const auto answer = AskCreate(*listener.ready[0]);
  EXPECT_TRUE(answer.ok()) << Describe(answer.status());
  EXPECT_THAT(listener.ready, SizeIs(1));
  EXPECT_TRUE(RunUntil([&] { return plugin->update_answers.size() == 24; }));
}

TEST_F(HostFaultsTest, OneThatDiesHearsNoRefusal) {
  const auto plugin = Ready();
  plugin->UpdateContainers({}, 2 * PluginSession::kMostUpdateRequests);
  ASSERT_TRUE(RunUntil([&] { return host().plugins()[0].failures > 0; }));
  plugin->Die();
  ASSERT_TRUE(RunUntil([&] { return listener.ready.empty(); }));
  EXPECT_FALSE(ttrpc::test::RunUntil(
      loop, [&] { return !plugin->update_answers.empty(); }, 2 * PluginSession::kRefusalDelay));
}

TEST_F(HostFaultsTest, TheNewerOfTwoOfOneNameCounts) {
  const auto old = Ready();
  PluginPort& old_port = *listener.ready[0];
  const auto young = Connect({.hangs_at_inventory = true});
  ASSERT_TRUE(RunUntil([&] { return young->synchronized; }));
  // Until the newer one is ready the older one decides, and the newer one is told later.
  PluginPort& port = *listener.synchronizing;
  ASSERT_NE(&port, &old_port);
  young->create = [](const api::CreateContainerRequest&) { return Internal("does not count"); };
  Created by_old;
  Created by_young;
  Create(old_port, by_old);
  Create(port, by_young);
  ASSERT_TRUE(RunUntil([&] { return by_old.has_value() && by_young.has_value(); }));
  EXPECT_TRUE(by_old->ok() && by_young->ok());
  EXPECT_EQ(young->told.back(), "Synchronize");
  listener.told.clear();
  young->Release();
  ASSERT_TRUE(RunUntil([&] { return old->lost.has_value() && young->told.size() == 3; }));
  EXPECT_EQ(young->told.back(), "CreateContainer p/c");
  EXPECT_THAT(listener.told, ElementsAre("ready 10-fake", HasSubstr("has come in its place")));
  EXPECT_THAT(listener.ready, ElementsAre(&port));
  const auto now = AskCreate(port);
  EXPECT_EQ(now.status(), Internal("does not count"));
  EXPECT_EQ(host().plugins()[0].state, PluginView::State::kReady);
}

TEST_F(HostFaultsTest, OneThatComesInPlaceOfALostOneDecides) {
  auto old = Ready();
  const auto young = Connect({.hangs_at_inventory = true});
  ASSERT_TRUE(RunUntil([&] { return young->synchronized; }));
  old->Die();
  ASSERT_TRUE(RunUntil([&] { return listener.ready.empty(); }));
  young->create = [](const api::CreateContainerRequest&) { return Internal("counts"); };
  Created answer;
  Create(*listener.synchronizing, answer);
  young->Release();
  ASSERT_TRUE(RunUntil([&] { return answer.has_value(); }));
  EXPECT_EQ(answer->status(), Internal("counts"));
}

TEST_F(HostFaultsTest, PluginsAreToldThatTheHostStops) {
  options.last_words = milliseconds(30);
  const auto plugin = Ready();
  const auto hangs = Ready({.name = "hangs"});
  hangs->Hang();
  const auto early = Connect({.name = "early", .registers = false});
  const auto synchronizing = Connect({.name = "synchronizing", .hangs_at_inventory = true});
  ASSERT_TRUE(RunUntil([&] { return synchronizing->synchronized; }));
  bool stopped = false;
  host().Stop([&] { stopped = true; });
  ASSERT_TRUE(RunUntil([&] { return stopped; }));
  EXPECT_TRUE(plugin->shut_down && hangs->shut_down && synchronizing->shut_down);
  EXPECT_FALSE(early->shut_down);
  EXPECT_THAT(listener.ready, IsEmpty());
  ASSERT_TRUE(RunUntil([&] { return plugin->lost && hangs->lost && early->lost; }));
}

TEST_F(HostFaultsTest, AHostWithoutPluginsStopsAtOnce) {
  bool stopped = false;
  const auto begin = EventLoop::Clock::now();
  host().Stop([&] { stopped = true; });
  ASSERT_TRUE(RunUntil([&] { return stopped; }));
  EXPECT_LT(EventLoop::Clock::now() - begin, options.last_words);
}

}  // namespace
}  // namespace resmgr::nri
