// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/config/nri_config.h"
#include "pkg/log/log.h"
#include "pkg/node/door_views.h"
#include "pkg/node/front_door.h"
#include "pkg/node/optional_services.h"
#include "pkg/nri/host/session/host_options.h"
#include "pkg/nri/host/session/plugin_host.h"
#include "pkg/nri/host/stage/nri_stage.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/runtime/inventory.h"

namespace resmgr {

struct NriHostingOptions {
  nri::HostOptions host{};
  nri::NriStageOptions stage{};
  bool cgroup_v2 = true;  // the node has cgroup v2, else v1
};

// Hosts NRI plugins for a CRI runtime that does not host any: has their stage after the policy, the
// socket that they connect to, and a connection for asking the runtime for data that they need. The
// socket is served once the runtime's pods and containers are known, so that plugins never see only
// some of them. If it cannot be served, that is logged and tried again. Loop's thread only.
class NriHosting {
 public:
  // The stage is in the context's pipeline as long as this object lives. All of the context and
  // `inventory` must outlive this object, and the stage's calls must end before it. `runtime` is
  // for requests of the plugins.
  NriHosting(const DoorContext& context, std::unique_ptr<RuntimeAccess> runtime,
             Inventory& inventory, NriHostingOptions options);
  ~NriHosting();

  void Start();
  // A runtime has connected, for the first time or again. It may be another version now: asks for
  // what plugins that connect from now on are told, and for what requests can express.
  void RuntimeConnected();
  // Changes the settings for plugins, except for the socket and whether plugins may connect there.
  void Configure(const NriHostConfig& config);
  // Tells the plugins that the host ends; `done` runs once, after at most half a second.
  void Stop(std::function<void()> done) { host_.Stop(std::move(done)); }
  std::vector<PluginView> plugins() const { return host_.plugins(); }
  // Plugins that are not served, and required plugins that have never connected.
  std::vector<Problem> problems() const;
  // The containers that plugins know.
  std::vector<SeenContainer> seen() const;

 private:
  void AskVersion();
  void Serve();
  void NoteUnserved(const Status& why);

  DoorContext context_;
  const bool cgroup_v2_;
  const std::string socket_;
  std::vector<std::string> required_;  // index and name, or the name alone
  Logger& log_;
  const std::unique_ptr<RuntimeAccess> runtime_;
  nri::NriStage stage_;
  nri::PluginHost host_;
  bool knows_runtime_ = false;
  bool told_ = false;  // a failure to serve the socket was logged
  std::optional<Unserved> unserved_;
  EventLoop::HandlePtr ask_;
  EventLoop::HandlePtr serve_;
};

}  // namespace resmgr
