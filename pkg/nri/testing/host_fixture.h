// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/nri/host/session/plugin_host.h"
#include "pkg/nri/host/session/plugin_port.h"
#include "pkg/nri/testing/fake_plugin.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/ttrpc/testing/test_loop.h"

namespace resmgr::nri::test {

// Listens to a host of plugins, gives each the same inventory, and records events, as "ready
// 10-fake".
class TellingListener final : public PluginListener {
 public:
  SharedSyncMessages Inventory(PluginPort& plugin) override {
    told.push_back("inventory " + plugin.full_name());
    synchronizing = &plugin;
    SyncWriter writer;
    for (const api::PodSandbox& pod : inventory.pods())
      writer.Add(pod);
    for (const api::Container& container : inventory.containers())
      writer.Add(container);
    return writer.Finish();
  }
  void OnReady(PluginPort& plugin, std::vector<api::ContainerUpdate> updates) override {
    told.push_back("ready " + plugin.full_name());
    ready.push_back(&plugin);
    for (const api::ContainerUpdate& update : updates)
      told.push_back("update " + update.container_id());
  }
  void OnUpdateContainers(PluginPort& plugin, const api::UpdateContainersRequest& request,
                          Updated done) override {
    told.push_back("updates of " + plugin.full_name());
    requests.push_back(request);
    waiting.push_back(std::move(done));
  }
  void OnLost(PluginPort& plugin, const Status& why) override {
    told.push_back("lost " + plugin.full_name() + ": " + std::string(Message(why)));
    ready.erase(std::remove(ready.begin(), ready.end(), &plugin), ready.end());
  }

  api::SynchronizeRequest inventory;
  std::vector<std::string> told;
  PluginPort* synchronizing = nullptr;  // the last one that got the inventory
  std::vector<PluginPort*> ready;
  std::vector<api::UpdateContainersRequest> requests;
  std::vector<Updated> waiting;
};

// A host of plugins, with fake ones that are connected over pairs of sockets. `options` take effect
// at the first call of `host`.
class HostFixture : public testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kPatience{5'000};

  HostFixture() {
    options.socket = directory.File("run/nri.sock");
    options.plugin_path = "";
  }

  PluginHost& host() {
    if (host_ == nullptr) {
      host_ = std::make_unique<PluginHost>(loop, listener, options);
      host_->SetRuntime({.name = "containerd", .version = "1.6.20"});
    }
    return *host_;
  }
  void EndHost() { host_.reset(); }

  std::unique_ptr<FakePlugin> Connect(FakePluginOptions plugin = {}) {
    ttrpc::test::SocketPair pair;
    host().Attach(std::move(pair.ours));
    return std::make_unique<FakePlugin>(loop, std::move(pair.theirs), std::move(plugin));
  }
  // The same, and waits until the plugin is ready: listener.ready.back().
  std::unique_ptr<FakePlugin> Ready(FakePluginOptions plugin = {}) {
    const size_t before = listener.told.size();
    const std::string wanted = "ready " + plugin.index + "-" + plugin.name;
    auto connected = Connect(std::move(plugin));
    EXPECT_TRUE(RunUntil([&] {
      return std::find(listener.told.begin() + static_cast<std::ptrdiff_t>(before),
                       listener.told.end(), wanted) != listener.told.end();
    }));
    return connected;
  }
  bool RunUntil(const std::function<bool()>& condition) {
    return ttrpc::test::RunUntil(loop, condition);
  }

  template <typename Response>
  using Answer = std::optional<StatusOr<Response>>;
  using Created = Answer<api::CreateContainerResponse>;
  template <typename Response>
  static PluginPort::Done<Response> Into(Answer<Response>& answer) {
    return [&answer](StatusOr<Response> told) {
      EXPECT_FALSE(answer.has_value()) << "answered twice";
      answer = std::move(told);
    };
  }
  static void Create(PluginPort& port, Created& answer,
                     std::chrono::milliseconds timeout = kPatience) {
    port.Ask(api::EVENT_CREATE_CONTAINER,
             About<api::CreateContainerRequest>("p", "c").SerializeAsString(), timeout,
             Into(answer));
  }
  // The same, with the answer.
  StatusOr<api::CreateContainerResponse> AskCreate(PluginPort& port,
                                                   std::chrono::milliseconds timeout = kPatience) {
    Created answer;
    Create(port, answer, timeout);
    EXPECT_TRUE(RunUntil([&] { return answer.has_value(); }));
    return answer.value_or(Internal("no answer"));
  }
  static void Notify(PluginPort& port, api::Event event, std::optional<Status>& answer,
                     std::chrono::milliseconds timeout = kPatience) {
    port.Notify(EventOf(event, "p", "c"), timeout,
                [&answer](const Status& told) { answer = told; });
  }

  EventLoop loop;
  TempDir directory;
  HostOptions options;
  TellingListener listener;

 private:
  std::unique_ptr<PluginHost> host_;
};

}  // namespace resmgr::nri::test
