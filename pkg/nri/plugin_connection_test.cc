// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/plugin_connection.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/bounded_message.h"
#include "pkg/nri/testing/fake_host.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"
#include "pkg/ttrpc/testing/test_loop.h"

namespace resmgr::nri {
namespace {

using std::chrono::milliseconds;
using test::Containerd;
using test::FakeHost;
using test::Inventory;
using test::Of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using ttrpc::test::RunUntil;

// Records requests, as "create web".
class TellingHandler final : public PluginHandler {
 public:
  void OnConfigured(const HostInfo& host) override {
    told.push_back("configured by " + host.runtime_name);
  }
  api::SynchronizeResponse OnSynchronize(const api::SynchronizeRequest& all) override {
    std::string text = "synchronize";
    for (const api::PodSandbox& pod : all.pods())
      text += " " + pod.name();
    for (const api::Container& container : all.containers())
      text += " " + container.name();
    told.push_back(text);
    api::SynchronizeResponse response;
    response.add_update()->set_container_id("moved");
    return response;
  }
  void OnCreateContainer(const api::CreateContainerRequest& request,
                         Reply<WithUpdates<api::CreateContainerResponse>> reply) override {
    told.push_back("create " + request.container().name());
    if (request.container().name() == "large") return reply(ResourceExhausted("needs 8 CPUs"));
    api::CreateContainerResponse response;
    response.mutable_adjust()->mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus("1-2");
    reply(response);
  }
  void OnUpdateContainer(const api::UpdateContainerRequest& request,
                         Reply<WithUpdates<api::UpdateContainerResponse>> reply) override {
    told.push_back("update " + request.container().name());
    reply(api::UpdateContainerResponse());
  }
  void OnStopContainer(const api::StopContainerRequest& request,
                       Reply<WithUpdates<api::StopContainerResponse>> reply) override {
    told.push_back("stop " + request.container().name());
    reply(api::StopContainerResponse());
  }
  void OnUpdatePodSandbox(const api::UpdatePodSandboxRequest& request,
                          Reply<api::UpdatePodSandboxResponse> reply) override {
    told.push_back("update pod " + request.pod().name());
    reply(api::UpdatePodSandboxResponse());
  }
  void OnEvent(const api::StateChangeEvent& event, Reply<api::Empty> reply) override {
    told.push_back(std::to_string(event.event()) + " " + event.pod().name() + "/" +
                   event.container().name());
    reply(api::Empty());
  }
  void OnDisconnected(const Status&) override { told.emplace_back("disconnected"); }

  std::vector<std::string> told;
};

class PluginConnectionTest : public testing::Test {
 protected:
  PluginConnectionTest() { connection_.StartOn(std::move(sockets_.theirs)); }

  void Synchronize(std::string_view version = "1.7.24") {
    ASSERT_TRUE(host_.Configure(Containerd(version)).ok());
    ASSERT_TRUE(host_.Synchronize(Inventory("p", "c", false)).ok());
    handler_.told.clear();
  }

  EventLoop loop_;
  ttrpc::test::SocketPair sockets_;
  TellingHandler handler_;
  FakeHost host_{loop_, std::move(sockets_.ours)};
  PluginConnection connection_{loop_, handler_, {}};
};

TEST_F(PluginConnectionTest, RegistersByNameAndIndex) {
  ASSERT_TRUE(RunUntil(loop_, [&] { return host_.registered.has_value(); }));
  EXPECT_EQ(host_.registered->plugin_name(), "cri-resmgr");
  EXPECT_EQ(host_.registered->plugin_idx(), "90");
  EXPECT_FALSE(connection_.synchronized());
}

TEST_F(PluginConnectionTest, AsksForTheEventsThatTheHostKnows) {
  const auto events = [this](const api::ConfigureRequest& request) {
    return host_.Call<api::ConfigureResponse>("Configure", request)->events();
  };
  EXPECT_EQ(events(Containerd("1.7.24")), 0x7ff);
  EXPECT_EQ(events(Containerd("2.2.0")), 0x1fff);
  EXPECT_EQ(events(Containerd("3.0.0", "v0.9.0")), 0x7ff);
}

TEST_F(PluginConnectionTest, TakesAnInventoryInPieces) {
  ASSERT_TRUE(host_.Configure(Containerd("2.1.0")).ok());
  const auto synchronize = [this](const api::SynchronizeRequest& piece) {
    return *host_.Call<api::SynchronizeResponse>("Synchronize", piece);
  };
  const api::SynchronizeResponse first = synchronize(Inventory("web", "nginx", true));
  EXPECT_TRUE(first.more());
  EXPECT_EQ(first.update_size(), 0);
  EXPECT_FALSE(connection_.synchronized());
  const api::SynchronizeResponse last = synchronize(Inventory("db", "pg", false));
  EXPECT_FALSE(last.more());
  EXPECT_EQ(last.update_size(), 1);
  EXPECT_TRUE(connection_.synchronized());
  EXPECT_THAT(handler_.told,
              ElementsAre("configured by containerd", "synchronize web db nginx pg"));
}

TEST_F(PluginConnectionTest, AnInventoryIsBounded) {
  ASSERT_TRUE(host_.Configure(Containerd("2.1.0")).ok());
  const std::string long_name(size_t{3} << 20, 'x');
  Status status;
  for (int i = 0; i < 30 && status.ok(); ++i) {
    status = host_.Synchronize(Inventory(long_name, "c", true));
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
}

// The limit of bytes does not bound these: empty containers take two bytes each, and a hundred
// times that once they are decoded.
TEST_F(PluginConnectionTest, TheFieldsOfAnInventoryAreBounded) {
  ASSERT_TRUE(host_.Configure(Containerd("2.1.0")).ok());
  // One repeated field, which costs nothing to decode.
  api::SynchronizeRequest more;
  more.set_more(true);
  const auto synchronize = [this, field = more.SerializeAsString()](size_t fields) {
    std::string piece;
    for (size_t i = 0; i < fields; ++i)
      piece += field;
    return host_.Call("Synchronize", piece).status();
  };
  EXPECT_EQ(synchronize(kMostPieceFields + 1).code(), StatusCode::kResourceExhausted);
  Status status;
  size_t pieces = 0;
  for (; status.ok(); ++pieces)
    status = synchronize(100'000);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(pieces, 8U) << "of a million, a quarter was in the first one";
}

TEST_F(PluginConnectionTest, ARequestWithTooManyFieldsIsRefused) {
  Synchronize();
  auto request = Of<api::CreateContainerRequest>("web", "nginx");
  for (size_t i = 0; i < kMostFields; ++i)
    request.mutable_container()->add_mounts();
  EXPECT_EQ(host_.Call("CreateContainer", request.SerializeAsString()).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_THAT(handler_.told, IsEmpty());
}

TEST_F(PluginConnectionTest, DecidesAboutContainers) {
  Synchronize();
  const auto created = host_.Call<api::CreateContainerResponse>(
      "CreateContainer", Of<api::CreateContainerRequest>("web", "nginx"));
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->adjust().linux().resources().cpu().cpus(), "1-2");
  const auto refused = host_.Call<api::CreateContainerResponse>(
      "CreateContainer", Of<api::CreateContainerRequest>("web", "large"));
  EXPECT_EQ(refused.status(), ResourceExhausted("needs 8 CPUs"));
  EXPECT_TRUE(host_
                  .Call<api::UpdateContainerResponse>(
                      "UpdateContainer", Of<api::UpdateContainerRequest>("web", "nginx"))
                  .ok());
  EXPECT_TRUE(host_
                  .Call<api::StopContainerResponse>("StopContainer",
                                                    Of<api::StopContainerRequest>("web", "nginx"))
                  .ok());
  EXPECT_THAT(handler_.told,
              ElementsAre("create nginx", "create large", "update nginx", "stop nginx"));
}

TEST_F(PluginConnectionTest, EventsComeByOneMethodOrByMethodsOfTheirOwn) {
  Synchronize();
  api::StateChangeEvent event = Of<api::StateChangeEvent>("web", "nginx");
  event.set_event(api::EVENT_START_CONTAINER);
  EXPECT_TRUE(host_.Call<api::Empty>("StateChange", event).ok());
  api::RunPodSandboxRequest run;
  run.mutable_pod()->set_name("web");
  EXPECT_TRUE(host_.Call<api::RunPodSandboxResponse>("RunPodSandbox", run).ok());
  EXPECT_TRUE(host_
                  .Call<api::PostStartContainerResponse>(
                      "PostStartContainer", Of<api::PostStartContainerRequest>("web", "nginx"))
                  .ok());
  api::UpdatePodSandboxRequest resize;
  resize.mutable_pod()->set_name("web");
  EXPECT_TRUE(host_.Call<api::UpdatePodSandboxResponse>("UpdatePodSandbox", resize).ok());
  EXPECT_THAT(handler_.told, ElementsAre("6 web/nginx", "1 web/", "7 web/nginx", "update pod web"));
}

TEST_F(PluginConnectionTest, NothingIsDecidedBeforeTheInventoryIsKnown) {
  const auto create = [this] {
    return host_.Call<api::CreateContainerResponse>(
        "CreateContainer", Of<api::CreateContainerRequest>("web", "nginx"));
  };
  EXPECT_EQ(create().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(host_.Synchronize(Inventory("p", "c", false)).code(), StatusCode::kFailedPrecondition);
  Synchronize();
  EXPECT_TRUE(create().ok());
  EXPECT_EQ(host_.Synchronize(Inventory("p", "c", false)).code(), StatusCode::kFailedPrecondition)
      << "a second one";
}

TEST_F(PluginConnectionTest, IsConfiguredBeforeItIsSynchronized) {
  Synchronize();
  EXPECT_EQ(host_.Configure(Containerd("1.7.24")).code(), StatusCode::kFailedPrecondition);
}

TEST_F(PluginConnectionTest, WhatIsNoProtobufIsRefused) {
  Synchronize();
  for (const char* const method : {"CreateContainer", "StateChange", "StopContainer", "Configure"})
    EXPECT_EQ(host_.Call(method, "\xff\xff").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(host_.Call("NewMethod", "").status().code(), StatusCode::kUnimplemented);
}

TEST_F(PluginConnectionTest, AsksTheRuntimeToChangeContainers) {
  std::optional<StatusOr<std::vector<api::ContainerUpdate>>> failed;
  const auto update = [&] {
    std::vector<api::ContainerUpdate> updates(2);
    updates[0].set_container_id("a");
    updates[1].set_container_id("b");
    connection_.UpdateContainers(std::move(updates), [&failed](auto told) { failed = told; });
    ASSERT_TRUE(RunUntil(loop_, [&] { return failed.has_value(); }));
  };
  update();
  EXPECT_EQ(failed->status().code(), StatusCode::kUnavailable) << "it is not synchronized";
  Synchronize();
  failed.reset();
  update();
  ASSERT_TRUE(failed->ok());
  ASSERT_EQ((*failed)->size(), 1U);
  EXPECT_EQ((*failed)->front().container_id(), "b");
}

TEST(PluginConnectionNamesTest, AreThoseThatHostsTake) {
  const auto check = [](std::string name, std::string index) {
    PluginConnection::Options options;
    options.name = std::move(name);
    options.index = std::move(index);
    return PluginConnection::Check(options);
  };
  EXPECT_TRUE(check("cri-resmgr", "90").ok());
  EXPECT_TRUE(check("a.b_c+d-1", "00").ok());
  for (const char* const name : {"", "a/b", "a b", "\xc3\xa4"})
    EXPECT_EQ(check(name, "90").code(), StatusCode::kInvalidArgument) << name;
  for (const char* const index : {"", "9", "900", "9a"})
    EXPECT_EQ(check("a", index).code(), StatusCode::kInvalidArgument) << index;
}

// A plugin that connects to a socket by itself, and the runtimes that it has connected to.
class PluginSocketTest : public testing::Test {
 protected:
  void Listen() {
    auto listener = ListeningSocket::Create(options_.socket);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_.emplace(*std::move(listener));
  }
  void Start() {
    connection_ = std::make_unique<PluginConnection>(loop_, handler_, options_);
    connection_->Start();
  }
  // Waits until the plugin has connected that often, and registered if that is not refused.
  bool Connected(size_t times) {
    return RunUntil(loop_, [&] {
      auto next = listener_->Accept();
      if (next.ok() && next->has_value()) {
        hosts_.push_back(std::make_unique<FakeHost>(loop_, **std::move(next)));
        hosts_.back()->registration = registration_;
      }
      return hosts_.size() == times && hosts_.back()->registered;
    });
  }

  EventLoop loop_;
  const TempDir directory_;
  TellingHandler handler_;
  PluginConnection::Options options_{.socket = directory_.File("nri.sock"),
                                     .first_pause = milliseconds(1),
                                     .last_pause = milliseconds(20)};
  StatusOr<std::string> registration_ = std::string();  // the runtimes' answer
  std::optional<ListeningSocket> listener_;
  std::unique_ptr<PluginConnection> connection_;
  std::vector<std::unique_ptr<FakeHost>> hosts_;
};

// A runtime that fails after the registration would leave the plugin waiting for ever.
TEST_F(PluginSocketTest, ARuntimeThatDoesNotSynchronizeIsConnectedToAnew) {
  options_.synchronization_timeout = milliseconds(300);
  Listen();
  Start();
  ASSERT_TRUE(Connected(1));
  ASSERT_TRUE(Connected(2)) << "it was not configured";
  ASSERT_TRUE(hosts_[1]->Configure(Containerd("1.7.24")).ok());
  ASSERT_TRUE(Connected(3)) << "it was not synchronized";
  EXPECT_THAT(handler_.told, ElementsAre("configured by containerd", "disconnected"));
  ASSERT_TRUE(hosts_[2]->Configure(Containerd("1.7.24")).ok());
  ASSERT_TRUE(hosts_[2]->Synchronize(Inventory("p", "c", false)).ok());
  EXPECT_FALSE(RunUntil(
      loop_, [&] { return !connection_->synchronized(); }, milliseconds(600)));
}

// A runtime that starts, ends and starts again.
TEST_F(PluginSocketTest, FollowsTheRuntime) {
  Start();
  for (size_t life = 1; life <= 3; ++life) {
    Listen();
    ASSERT_TRUE(Connected(life));
    ASSERT_TRUE(hosts_.back()->Configure(Containerd("1.7.24")).ok());
    ASSERT_TRUE(hosts_.back()->Synchronize(Inventory("p", "c", false)).ok());
    EXPECT_TRUE(connection_->synchronized());
    listener_.reset();
    hosts_.back().reset();
  }
  ASSERT_TRUE(RunUntil(loop_, [&] { return !connection_->synchronized(); }));
  EXPECT_THAT(handler_.told, testing::Contains("disconnected").Times(3));
}

TEST_F(PluginSocketTest, ARuntimeThatRefusesThePluginIsAskedAgain) {
  registration_ = FailedPrecondition("the index is taken");
  Listen();
  Start();
  ASSERT_TRUE(Connected(2));
  EXPECT_THAT(handler_.told, IsEmpty());
}

}  // namespace
}  // namespace resmgr::nri
