// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "pkg/nri/host/session/plugin_port.h"

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

}  // namespace resmgr::nri::test
