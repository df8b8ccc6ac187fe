// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/testing/host_fixture.h"

namespace resmgr::nri {
namespace {

using test::Dialect;
using testing::ElementsAre;
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
  const auto answer = AskCreate(*listener.ready[0]);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->adjust().env(0).key(), "c");
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
                   [&](const StatusOr<api::Empty>& answer) { answers += answer.ok() ? 1U : 100U; });
      port->Notify(test::EventOf(api::EVENT_START_CONTAINER, "p", "c"), kPatience,
                   [&](const StatusOr<api::Empty>& answer) { answers += answer.ok() ? 1U : 100U; });
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
  port.UpdatePod({}, kPatience, Into(answer));
  ASSERT_TRUE(RunUntil([&] { return answer.has_value(); }));
  EXPECT_TRUE(answer->ok()) << answer->status();
  EXPECT_FALSE(port.Wants(api::EVENT_UPDATE_POD_SANDBOX));
  // A creation needs the validator's answer.
  Answer<api::ValidateContainerAdjustmentResponse> validation;
  port.Validate({}, kPatience, Into(validation));
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
  Answer<api::Empty> created;
  Created second;
  Answer<api::StopContainerResponse> stopped;
  plugin->Hang();
  Notify(port, api::EVENT_POST_CREATE_CONTAINER, created);
  Create(port, second);
  port.Stop(test::About<api::StopContainerRequest>("p", "c"), kPatience, Into(stopped));
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
    EXPECT_EQ(host().plugins()[0].state, PluginState::kReady);
  }
  ASSERT_TRUE(RunUntil([&] { return listener.ready.empty(); }));
  const auto again = Ready();
  Answer<api::Empty> answer;
  Notify(*listener.ready[0], api::EVENT_START_CONTAINER, answer);
  ASSERT_TRUE(RunUntil([&] { return answer.has_value(); }));
  const std::vector<PluginStatus> plugins = host().plugins();
  ASSERT_THAT(plugins, SizeIs(1));
  EXPECT_EQ(plugins[0].index, "10");
  EXPECT_EQ(plugins[0].name, "fake");
  EXPECT_EQ(plugins[0].calls, 2U);
  EXPECT_EQ(plugins[0].failures, 1U);
  EXPECT_EQ(plugins[0].last_error, "internal: no");
  EXPECT_GT(plugins[0].p50_micros, 0U);
}

}  // namespace
}  // namespace resmgr::nri
