// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pkg/config/nri_config.h"
#include "pkg/log/log.h"
#include "pkg/node/front_door.h"
#include "pkg/node/plugin_view.h"
#include "pkg/node/seen_container.h"
#include "pkg/nri/host/host_options.h"
#include "pkg/nri/host/nri_stage.h"
#include "pkg/nri/host/plugin_host.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr {

struct NriHostingOptions {
  nri::HostOptions host{};
  nri::NriStageOptions stage{};
  bool cgroup_v2 = true;  // of the node
};

// Hosts NRI plugins before a CRI runtime that does not host any itself: their stage behind the
// policy, the socket that they connect to, and the connection by which the runtime is asked for
// what they want to know. The socket is served once the runtime has told what it has: a plugin is
// never shown less. Where it cannot be served that is logged, and tried again. Loop's thread only.
class NriHosting {
 public:
  // Its stage is in the context's pipeline as long as it lives. All of the context outlives it; the
  // calls that the stage looks at end first.
  NriHosting(const DoorContext& context, std::unique_ptr<RuntimeAccess> runtime,
             NriHostingOptions options);
  ~NriHosting();

  void Start();
  // How plugins are served from now on. Its socket and whether plugins may connect there stay.
  void Configure(const NriHostConfig& config);
  void OnContainerEvent(const ContainerEvent& event) { stage_.OnContainerEvent(event); }
  // Tells the plugins that the host ends; `done` runs once, half a second later at the latest.
  void Stop(std::function<void()> done) { host_.Stop(std::move(done)); }
  std::vector<PluginView> plugins() const;
  // The containers that plugins are told of.
  std::vector<SeenContainer> seen() const;

 private:
  void AskVersion();
  void Serve();
  void TryAgain(const Status& why, void (NriHosting::*step)());

  DoorContext context_;
  const bool cgroup_v2_;
  Logger& log_;
  const std::unique_ptr<RuntimeAccess> runtime_;
  nri::NriStage stage_;
  nri::PluginHost host_;
  bool told_ = false;  // of what keeps the socket from being served
  EventLoop::HandlePtr retry_;
};

}  // namespace resmgr
