// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "pkg/cri/runtime_inspector.h"
#include "pkg/hooks/hook_servers.h"
#include "pkg/hooks/hook_stage.h"
#include "pkg/hooks/hook_watch.h"
#include "pkg/log/log.h"
#include "pkg/node/front_door.h"
#include "pkg/node/plugin_view.h"
#include "pkg/resmgr/clock.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr {

struct HookHostingOptions {
  std::string directory{};                   // with a file for each hook server
  std::chrono::milliseconds timeout{2'000};  // for one answer, where a server's file has none
  hooks::HookStageOptions stage{};
};

// Has hook servers asked about the calls to a CRI runtime: the servers that the directory's files
// describe, their stage behind the policy, and the connection by which the runtime is asked for
// what the servers want to know. Loop's thread only.
class HookHosting {
 public:
  static constexpr std::chrono::milliseconds kCountInterval{1'000};  // of servers that are ready
  // A directory that hangs keeps calls waiting no longer at the start.
  static constexpr std::chrono::milliseconds kFirstRead{2'000};

  // Its stage is in the context's pipeline as long as it lives. All of the context outlives it; the
  // calls that the stage looks at end first.
  HookHosting(const DoorContext& context, const std::string& runtime_socket,
              const std::string& image_socket, HookHostingOptions options);
  ~HookHosting();

  void Start();
  // The runtime is there, maybe after it was away.
  void OnRuntimeConnected() { stage_.Start(); }
  void OnContainerEvent(const ContainerEvent& event) { stage_.OnContainerEvent(event); }
  std::vector<PluginView> plugins() const;

 private:
  void Take(const hooks::HookDirectoryWatch::Files& files);
  void CountReady();

  DoorContext context_;
  const std::string directory_;
  Logger& log_;
  LoopClock clock_;
  RuntimeInspector runtime_;
  hooks::HookServers servers_;
  hooks::HookStage stage_;
  EventLoop::HandlePtr next_count_;
  EventLoop::HandlePtr first_read_;
  std::optional<hooks::HookDirectoryWatch> watch_;  // from the start on; gone first
};

}  // namespace resmgr
