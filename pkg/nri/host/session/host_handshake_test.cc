// SPDX-License-Identifier: Apache-2.0
// The handshake of plugins, in good order and not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pkg/nri/testing/host_fixture.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::nri {
namespace {

using std::chrono::milliseconds;
using test::Dialect;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

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
  const std::vector<PluginStatus> plugins = host().plugins();
  ASSERT_THAT(plugins, SizeIs(1));
  EXPECT_EQ(plugins[0].state, PluginState::kFailed);
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
  Answer<api::Empty> started;
  Create(*listener.synchronizing, created);
  // No caller waits for this any more when it is sent.
  Notify(*listener.synchronizing, api::EVENT_START_CONTAINER, started, milliseconds(1));
  ASSERT_TRUE(RunUntil([&] { return started.has_value(); }));
  EXPECT_EQ(started->status().code(), StatusCode::kDeadlineExceeded);
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
  StatusOr<UniqueFd> socket = ConnectUnix(options.socket);
  ASSERT_TRUE(socket.ok());
  const test::FakePlugin plugin(loop, *std::move(socket));
  ASSERT_TRUE(RunUntil([&] { return listener.ready.size() == 1; }));
}

TEST_F(HostHandshakeTest, ASocketThatAnotherProcessServesIsLeftToIt) {
  const auto theirs = ListeningSocket::Create(options.socket);
  ASSERT_TRUE(theirs.ok());
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

}  // namespace
}  // namespace resmgr::nri
