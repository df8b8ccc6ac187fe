// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_host.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>
#include <sys/stat.h>

#include "pkg/nri/host/session/plugin_registry.h"
#include "pkg/nri/testing/host_fixture.h"
#include "pkg/sys/unix_socket.h"
#include "test/support/status_matchers.h"

namespace resmgr::nri {
namespace {

using resmgr::test::Must;
using std::chrono::milliseconds;
using test::Dialect;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using PluginHostTest = test::HostFixture;

TEST_F(PluginHostTest, APluginIsConfiguredSynchronizedAndAsked) {
  listener.inventory.add_pods()->set_name("p");
  listener.inventory.add_containers()->set_name("c");
  const auto plugin = Connect({.dialect = Dialect::k012, .index = "20", .name = "x_.+-9"});
  plugin->sync_updates.emplace_back().set_container_id("moved");
  ASSERT_TRUE(RunUntil([&] { return !listener.ready.empty(); }));
  EXPECT_TRUE(plugin->registration->ok());
  EXPECT_THAT(plugin->told, ElementsAre("Configure", "Synchronize"));
  EXPECT_THAT(listener.told, ElementsAre("inventory 20-x_.+-9", "ready 20-x_.+-9", "update moved"));
  EXPECT_EQ(plugin->inventory.SerializeAsString(), listener.inventory.SerializeAsString());
  EXPECT_EQ(plugin->configured->runtime_name(), "containerd");
  EXPECT_EQ(plugin->configured->runtime_version(), "1.6.20");
  EXPECT_EQ(plugin->configured->registration_timeout(), 5000);
  EXPECT_EQ(plugin->configured->request_timeout(), 2000);
  EXPECT_EQ(plugin->configured->nri_version(), "v0.12.2");

  plugin->create = [](const api::CreateContainerRequest& request) {
    api::CreateContainerResponse response;
    response.mutable_adjust()->add_env()->set_key(request.container().name());
    return response;
  };
  const auto answer = Must(AskCreate(*listener.ready[0]));
  EXPECT_EQ(answer.adjust().env(0).key(), "c");
}

TEST_F(PluginHostTest, EventsComeByTheMethodThatThePluginHas) {
  const auto old = Ready({.dialect = Dialect::k061, .index = "10"});
  const auto young = Ready({.dialect = Dialect::k012, .index = "20"});
  // It sends a version but has none of the new methods.
  const auto odd = Ready({.dialect = Dialect::k061, .index = "30", .says_version = true});
  size_t answers = 0;
  for (int i = 0; i < 2; ++i) {
    for (PluginPort* const port : listener.ready) {
      port->Notify(test::EventOf(api::EVENT_RUN_POD_SANDBOX, "p", ""), kPatience,
                   [&](const Status& answer) { answers += answer.ok() ? 1U : 100U; });
      port->Notify(test::EventOf(api::EVENT_START_CONTAINER, "p", "c"), kPatience,
                   [&](const Status& answer) { answers += answer.ok() ? 1U : 100U; });
    }
  }
  ASSERT_TRUE(RunUntil([&] { return answers >= 12; }));
  EXPECT_EQ(answers, 12U);
  const auto by_state_change = ElementsAre(
      "Configure", "Synchronize", "StateChange RunPodSandbox p", "StateChange StartContainer p/c",
      "StateChange RunPodSandbox p", "StateChange StartContainer p/c");
  EXPECT_THAT(old->told, by_state_change);
  EXPECT_THAT(odd->told, by_state_change);
  EXPECT_THAT(young->told,
              ElementsAre("Configure", "Synchronize", "RunPodSandbox p", "StartContainer p/c",
                          "RunPodSandbox p", "StartContainer p/c"));
}

TEST_F(PluginHostTest, WhatAPluginRefusesIsItsAnswer) {
  const auto plugin = Ready();
  plugin->create = [](const api::CreateContainerRequest&) {
    return FailedPrecondition("the image is not signed");
  };
  const auto answer = AskCreate(*listener.ready[0]);
  EXPECT_EQ(answer.status(), FailedPrecondition("the image is not signed"));
  EXPECT_THAT(listener.ready, SizeIs(1));
}

TEST_F(PluginHostTest, APluginThatDiesAnswersUnavailable) {
  auto plugin = Ready();
  plugin->Hang();
  Created answer;
  PluginPort& port = *listener.ready[0];
  Create(port, answer);
  ASSERT_TRUE(RunUntil([&] { return plugin->told.size() == 3; }));
  plugin->Die();
  ASSERT_TRUE(RunUntil([&] { return answer.has_value(); }));
  EXPECT_EQ(answer->status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(listener.ready, IsEmpty());
  EXPECT_EQ(listener.told.back(), "lost 10-fake: the peer closed the connection");
}

TEST_F(PluginHostTest, AnEventWithoutAMethodIsNotAskedForAgain) {
  const auto plugin = Ready({.dialect = Dialect::k061, .events = 0});
  PluginPort& port = *listener.ready[0];
  // 0 stands for everything but validation.
  EXPECT_TRUE(port.Wants(api::EVENT_UPDATE_POD_SANDBOX));
  EXPECT_FALSE(port.Wants(api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT));
  Answer<api::UpdatePodSandboxResponse> answer;
  port.Ask(api::EVENT_UPDATE_POD_SANDBOX, {}, kPatience, Into(answer));
  ASSERT_TRUE(RunUntil([&] { return answer.has_value(); }));
  EXPECT_TRUE(answer->ok()) << answer->status();
  EXPECT_FALSE(port.Wants(api::EVENT_UPDATE_POD_SANDBOX));
  // A creation needs the validator's answer.
  Answer<api::ValidateContainerAdjustmentResponse> validation;
  port.Ask(api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT, {}, kPatience, Into(validation));
  ASSERT_TRUE(RunUntil([&] { return validation.has_value(); }));
  EXPECT_EQ(validation->status().code(), StatusCode::kUnimplemented);
}

TEST_F(PluginHostTest, UnknownEventsAreLeftOut) {
  const auto plugin = Ready({.events = 0x40008});
  EXPECT_THAT(host().plugins()[0].events, ElementsAre("CreateContainer"));
}

TEST_F(PluginHostTest, QuestionsKeepTheirOrder) {
  const auto plugin = Ready();
  PluginPort& port = *listener.ready[0];
  std::optional<Status> created;
  Created second;
  Answer<api::StopContainerResponse> stopped;
  plugin->Hang();
  Notify(port, api::EVENT_POST_CREATE_CONTAINER, created);
  Create(port, second);
  port.Ask(api::EVENT_STOP_CONTAINER,
           test::About<api::StopContainerRequest>("p", "c").SerializeAsString(), kPatience,
           Into(stopped));
  ASSERT_TRUE(RunUntil([&] { return plugin->told.size() == 3; }));
  EXPECT_EQ(plugin->told.back(), "PostCreateContainer p/c");
  plugin->Release();
  ASSERT_TRUE(RunUntil([&] { return stopped.has_value(); }));
  EXPECT_TRUE(created->ok() && second->ok() && stopped->ok());
  EXPECT_THAT(plugin->told, ElementsAre("Configure", "Synchronize", "PostCreateContainer p/c",
                                        "CreateContainer p/c", "StopContainer p/c"));
}

TEST_F(PluginHostTest, FiguresOutliveTheConnection) {
  {
    const auto plugin = Ready();
    plugin->create = [](const api::CreateContainerRequest&) { return Internal("no"); };
    const auto answer = AskCreate(*listener.ready[0]);
    EXPECT_EQ(host().plugins()[0].state, PluginView::State::kReady);
  }
  ASSERT_TRUE(RunUntil([&] { return listener.ready.empty(); }));
  const auto again = Ready();
  std::optional<Status> answer;
  Notify(*listener.ready[0], api::EVENT_START_CONTAINER, answer);
  ASSERT_TRUE(RunUntil([&] { return answer.has_value(); }));
  const std::vector<PluginView> plugins = host().plugins();
  ASSERT_THAT(plugins, SizeIs(1));
  EXPECT_EQ(plugins[0].kind, "nri");
  EXPECT_EQ(plugins[0].index, "10");
  EXPECT_EQ(plugins[0].name, "fake");
  EXPECT_THAT(plugins[0].events, testing::Contains("CreateContainer"));
  EXPECT_EQ(plugins[0].calls, 2U);
  EXPECT_EQ(plugins[0].failures, 1U);
  EXPECT_EQ(plugins[0].last_error, "internal: no");
  EXPECT_GT(plugins[0].p50_micros, 0U);
}

// The handshake of plugins, in good order and not.
class HostHandshakeTest : public test::HostFixture {
 protected:
  // Adds pods and containers of about `bytes` bytes together.
  void Fill(size_t pods, size_t containers, size_t bytes) {
    for (size_t i = 0; i < pods; ++i) {
      api::PodSandbox& pod = *listener.inventory.add_pods();
      pod.set_id("p" + std::to_string(i));
      (*pod.mutable_annotations())["text"] = std::string(bytes / (pods + containers), 'a');
    }
    for (size_t i = 0; i < containers; ++i) {
      api::Container& container = *listener.inventory.add_containers();
      container.set_id("c" + std::to_string(i));
      container.add_args(std::string(bytes / (pods + containers), 'b'));
    }
  }
};

TEST_F(HostHandshakeTest, NamesAreChecked) {
  for (const auto& [index, name] :
       {std::pair("10", "foo,bar"), {"10", ""}, {"1", "a"}, {"a0", "a"}, {"100", "a"}}) {
    const auto plugin = Connect({.index = index, .name = name});
    ASSERT_TRUE(RunUntil([&] { return plugin->lost.has_value(); }));
    EXPECT_EQ(plugin->registration->code(), StatusCode::kInvalidArgument) << index << name;
  }
  const auto plugin = Ready({.index = "00", .name = "abcd-0123+EFGH_4567.ijkl"});
  EXPECT_THAT(listener.told, ElementsAre("inventory 00-abcd-0123+EFGH_4567.ijkl",
                                         "ready 00-abcd-0123+EFGH_4567.ijkl"));
}

TEST_F(HostHandshakeTest, OneThatDoesNotRegisterEndsBesideOthers) {
  options.registration_timeout = milliseconds(200);
  const auto silent = Connect({.registers = false});
  const auto plugin = Ready({.name = "other"});
  EXPECT_FALSE(silent->lost.has_value());
  ASSERT_TRUE(RunUntil([&] { return silent->lost.has_value(); }));
  EXPECT_THAT(listener.ready, SizeIs(1));
}

TEST_F(HostHandshakeTest, APluginGetsTheEventsThatItAskedFor) {
  for (int event = api::EVENT_RUN_POD_SANDBOX; event < api::EVENT_LAST; ++event) {
    const auto plugin = Ready({.events = 1 << (event - 1)});
    for (int other = 0; other <= api::EVENT_LAST; ++other) {
      EXPECT_EQ(listener.ready.back()->Wants(static_cast<api::Event>(other)), other == event)
          << event << " " << other;
    }
  }
}

TEST_F(HostHandshakeTest, ASecondRegistrationIsRefused) {
  const auto plugin = Ready();
  plugin->registration.reset();
  plugin->Register();
  ASSERT_TRUE(RunUntil([&] { return plugin->registration.has_value(); }));
  EXPECT_EQ(plugin->registration->code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(listener.ready, SizeIs(1));
}

TEST_F(HostHandshakeTest, OneThatIsNotConfiguredInTimeEnds) {
  options.settings.request_timeout = milliseconds(20);
  const auto plugin = Connect();
  plugin->Hang();
  ASSERT_TRUE(RunUntil([&] { return plugin->lost.has_value(); }));
  EXPECT_THAT(listener.told, IsEmpty());
  const std::vector<PluginView> plugins = host().plugins();
  ASSERT_THAT(plugins, SizeIs(1));
  EXPECT_EQ(plugins[0].state, PluginView::State::kFailed);
  EXPECT_THAT(plugins[0].last_error, HasSubstr("not configured"));
}

TEST_F(HostHandshakeTest, SettingsOfItsOwnAreToldToIt) {
  options.plugins["10-fake"].request_timeout = milliseconds(700);
  options.plugins["10-fake"].failure = FailurePolicy::kFail;
  const auto plugin = Ready();
  EXPECT_EQ(plugin->configured->request_timeout(), 700);
  EXPECT_EQ(listener.ready[0]->settings().failure, FailurePolicy::kFail);
}

TEST_F(HostHandshakeTest, SettingsChangeWhileItIsConnected) {
  const auto plugin = Ready();
  const auto other = Ready({.name = "other"});
  HostOptions changed = options;
  changed.settings.required = true;
  changed.plugins["10-fake"].failure = FailurePolicy::kFail;
  host().Configure(changed);
  EXPECT_EQ(listener.ready[0]->settings().failure, FailurePolicy::kFail);
  EXPECT_FALSE(listener.ready[0]->settings().required);
  EXPECT_TRUE(listener.ready[1]->settings().required);
}

TEST_F(HostHandshakeTest, ALargeInventoryComesInPieces) {
  Fill(100, 300, size_t{10} << 20);
  const std::string all = listener.inventory.SerializeAsString();
  const auto plugin = Ready({.dialect = Dialect::k08});
  EXPECT_EQ(plugin->pieces, 3U);
  EXPECT_TRUE(plugin->inventory.SerializeAsString() == all);
  EXPECT_THAT(plugin->told, ElementsAre("Configure", "Synchronize"));
}

TEST_F(HostHandshakeTest, OneThatTakesNoPiecesEnds) {
  Fill(100, 300, size_t{4} << 20);
  const auto old = Connect({.dialect = Dialect::k061});
  ASSERT_TRUE(RunUntil([&] { return old->lost.has_value(); }));
  // A second call would give a second view of the node.
  EXPECT_EQ(old->pieces, 1U);
  EXPECT_THAT(listener.told, ElementsAre("inventory 10-fake", HasSubstr("older than NRI 0.7")));
}

TEST_F(HostHandshakeTest, AContainerThatFitsInNoMessageIsLeftOut) {
  Fill(1, 1, size_t{12} << 20);
  listener.inventory.add_containers()->set_id("small");
  const auto plugin = Ready();
  EXPECT_THAT(plugin->inventory.pods(), IsEmpty());
  ASSERT_THAT(plugin->inventory.containers(), SizeIs(1));
  EXPECT_EQ(plugin->inventory.containers(0).id(), "small");
}

TEST_F(HostHandshakeTest, ThePatienceForTheInventoryIsItsOwn) {
  options.settings.request_timeout = milliseconds(50);
  options.sync_timeout = milliseconds(100);
  const auto plugin = Connect({.hangs_at_inventory = true});
  const auto begin = EventLoop::Clock::now();
  ASSERT_TRUE(RunUntil([&] { return plugin->lost.has_value(); }));
  EXPECT_GT(EventLoop::Clock::now() - begin, milliseconds(80));
  EXPECT_THAT(listener.told.back(), HasSubstr("has not taken pods and containers"));
}

TEST_F(HostHandshakeTest, WhatIsAskedDuringTheInventoryFollowsBehind) {
  const auto plugin = Connect({.hangs_at_inventory = true});
  ASSERT_TRUE(RunUntil([&] { return plugin->synchronized; }));
  Created created;
  std::optional<Status> started;
  Create(*listener.synchronizing, created);
  // No caller waits for this any more when it is sent.
  Notify(*listener.synchronizing, api::EVENT_START_CONTAINER, started, milliseconds(1));
  ASSERT_TRUE(RunUntil([&] { return started.has_value(); }));
  EXPECT_EQ(started->code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(plugin->told.back(), "Synchronize");
  plugin->Release();
  ASSERT_TRUE(RunUntil([&] { return plugin->told.size() == 4; }));
  EXPECT_TRUE(created->ok());
  EXPECT_THAT(plugin->told,
              ElementsAre("Configure", "Synchronize", "CreateContainer p/c", "StartContainer p/c"));
}

TEST_F(HostHandshakeTest, ChangesAreRefusedUntilItIsReady) {
  const auto plugin = Connect();
  plugin->Hang();
  plugin->UpdateContainers({}, 1);
  ASSERT_TRUE(RunUntil([&] { return !plugin->update_answers.empty(); }));
  EXPECT_EQ(plugin->update_answers[0].status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(HostHandshakeTest, TheSocketIsForRootAlone) {
  ASSERT_TRUE(host().Start().ok());
  struct stat found {};
  ASSERT_EQ(::stat(options.socket.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600U);
  ASSERT_EQ(::stat(directory.File("run").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700U);
  UniqueFd socket = Must(ConnectUnix(options.socket));
  const test::FakePlugin plugin(loop, std::move(socket));
  ASSERT_TRUE(RunUntil([&] { return listener.ready.size() == 1; }));
}

TEST_F(HostHandshakeTest, ASocketThatAnotherProcessServesIsLeftToIt) {
  const auto theirs = Must(ListeningSocket::Create(options.socket));
  ::unlink((options.socket + ".lock").c_str());
  EXPECT_EQ(host().Start().code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(ConnectUnix(options.socket).ok());
}

TEST_F(HostHandshakeTest, WithoutExternalPluginsThereIsNoSocket) {
  options.external_plugins = false;
  ASSERT_TRUE(host().Start().ok());
  EXPECT_FALSE(ConnectUnix(options.socket).ok());
}

TEST_F(HostHandshakeTest, PluginsBeyondTheMostAreNotServed) {
  options.most_plugins = 2;
  const auto first = Connect({.registers = false});
  const auto second = Ready();
  const auto third = Connect({.name = "third"});
  ASSERT_TRUE(RunUntil([&] { return third->lost.has_value(); }));
  EXPECT_FALSE(first->lost || second->lost);
}

TEST(PluginRegistryTest, OfThoseThatAreGoneTheLastAreKnown) {
  PluginRegistry registry;
  registry.Add("00", "stays");
  registry.SetReady("00-stays", 0);
  for (size_t i = 0; i < PluginRegistry::kMostKnown; ++i) {
    const std::string name = "n" + std::to_string(i);
    registry.Add("10", name);
    registry.Remove("10-" + name, false, PluginView::State::kFailed, Internal("it broke"));
  }
  const std::vector<PluginView> plugins = registry.List();
  ASSERT_THAT(plugins, SizeIs(PluginRegistry::kMostKnown));
  EXPECT_EQ(plugins[0].name, "stays");
  EXPECT_EQ(plugins[0].state, PluginView::State::kReady);
  EXPECT_EQ(plugins[1].name, "n1");
  EXPECT_EQ(plugins[1].state, PluginView::State::kFailed);
  EXPECT_EQ(plugins[1].last_error, "it broke");
}

TEST(PluginRegistryTest, WordsOfPluginsAreCut) {
  PluginRegistry registry;
  registry.Add("10", "a").NoteFailure(Internal("{}", std::string(1 << 20, 'x') + "\x1b"));
  EXPECT_LT(registry.List()[0].last_error.size(), 600U);
  registry.Remove("10-a", false, PluginView::State::kFailed,
                  Internal("\x1b{}", std::string(1 << 20, 'x')));
  EXPECT_LT(registry.List()[0].last_error.size(), 600U);
  EXPECT_EQ(registry.List()[0].last_error.find('\x1b'), std::string::npos);
}

TEST(PluginRegistryTest, CountsForTheMetrics) {
  Metrics metrics("1", {});
  PluginRegistry registry(&metrics);
  const auto text = [&metrics] {
    return prometheus::TextSerializer().Serialize(metrics.collectable()->Collect());
  };
  PluginStats& stats = registry.Add("10", "a");
  registry.SetReady("10-a", 0x8);
  stats.NoteAnswer(std::chrono::milliseconds(1), OkStatus());
  stats.NoteAnswer(std::chrono::milliseconds(1), Internal("refused"));
  stats.NoteFailure(DeadlineExceeded("late"));
  const std::string labels = R"({kind="nri",plugin="10-a"} 2)";
  EXPECT_THAT(text(), HasSubstr("cri_resmgr_plugin_call_seconds_count" + labels));
  EXPECT_THAT(text(), HasSubstr("cri_resmgr_plugin_failures_total" + labels));
  EXPECT_THAT(text(), HasSubstr(R"(cri_resmgr_plugins_ready{kind="nri"} 1)"));
  registry.Remove("10-a", true, PluginView::State::kDisconnected, Unavailable("gone"));
  EXPECT_THAT(text(), HasSubstr(R"(cri_resmgr_plugins_ready{kind="nri"} 0)"));
}

TEST(PluginRegistryTest, APluginIsReadyAsLongAsOneSessionIs) {
  PluginRegistry registry;
  PluginStats& first = registry.Add("10", "a");
  registry.SetReady("10-a", 0x8);
  PluginStats& second = registry.Add("10", "a");
  EXPECT_EQ(&first, &second);
  registry.SetReady("10-a", 0x408);
  registry.Remove("10-a", true, PluginView::State::kDisconnected, Unavailable("replaced"));
  EXPECT_EQ(registry.List()[0].state, PluginView::State::kReady);
  EXPECT_THAT(registry.List()[0].events, ElementsAre("CreateContainer", "RemoveContainer"));
  registry.Remove("10-a", true, PluginView::State::kDisconnected, Unavailable("gone"));
  EXPECT_THAT(registry.List(),
              ElementsAre(testing::Field(&PluginView::state, PluginView::State::kDisconnected)));
}

TEST(PluginStatsTest, TheMedianIsOfTheLastAnswers) {
  PluginStats stats;
  EXPECT_EQ(stats.MedianMicros(), 0U);
  for (int i = 0; i < 1000; ++i)
    stats.NoteAnswer(std::chrono::seconds(1), OkStatus());
  for (int i = 0; i < 100; ++i)
    stats.NoteAnswer(std::chrono::microseconds(i), OkStatus());
  EXPECT_EQ(stats.MedianMicros(), 64U);
  EXPECT_EQ(stats.calls(), 1100U);
  EXPECT_EQ(stats.failures(), 0U);
}

}  // namespace
}  // namespace resmgr::nri
