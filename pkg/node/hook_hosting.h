// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "pkg/config/module_configs.h"
#include "pkg/hooks/hook_directory.h"
#include "pkg/hooks/hook_servers.h"
#include "pkg/hooks/hook_stage.h"
#include "pkg/log/log.h"
#include "pkg/node/door_views.h"
#include "pkg/node/front_door.h"
#include "pkg/runtime/inventory.h"
#include "pkg/sys/clock.h"

namespace resmgr {

struct HookHostingOptions {
  std::string directory{};                   // has a file for each hook server; "": no servers
  std::chrono::milliseconds timeout{2'000};  // of each answer, unless the server's file sets one
  hooks::HookStageOptions stage{};
};

// Asks hook servers about the calls to a CRI runtime: has the servers of the directory's files, and
// a stage after the policy. Without a directory the stage is not in the pipeline, so calls cost
// nothing. Loop's thread only.
class HookHosting {
 public:
  // How long calls wait at the start for a directory that hangs.
  static constexpr std::chrono::milliseconds kFirstRead{2'000};

  // All of the context and `inventory` must outlive this object; calls in its stage must end before
  // it.
  HookHosting(const DoorContext& context, Inventory& inventory, HookHostingOptions options);
  ~HookHosting();

  void Start();
  // Whether servers are asked: there is a directory.
  bool serving() const { return serving_; }
  // Applies to later calls. If the directory changes, its servers are used once it was read; until
  // then those of the former directory are.
  void Configure(const HooksConfig& config);
  std::vector<PluginView> plugins() const;
  // Reports a directory that cannot be read, and files whose new version is invalid, so that a
  // former one is in force.
  std::vector<Problem> problems() const;
  // The containers that servers can be asked about.
  std::vector<SeenContainer> seen() const;

 private:
  void Open();
  void Close();
  void Watch();
  void Take(const hooks::HookDirectoryWatch::Files& files);

  DoorContext context_;
  std::string directory_;
  std::chrono::milliseconds timeout_;
  bool started_ = false;
  bool serving_ = false;  // the stage is in the pipeline
  Logger& log_;
  LoopClock clock_;
  hooks::HookServers servers_;
  hooks::HookStage stage_;
  EventLoop::HandlePtr first_read_;
  std::optional<hooks::HookDirectoryWatch> watch_;  // set while serving; destroyed first
};

}  // namespace resmgr
