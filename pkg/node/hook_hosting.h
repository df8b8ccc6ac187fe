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
  std::string directory{};                   // directory with a file for each hook server; "": none
  std::chrono::milliseconds timeout{2'000};  // of one answer, unless a server's file has one
  hooks::HookStageOptions stage{};
};

// Hook servers for the calls to a CRI runtime: the servers of the directory's files, and their
// stage behind the policy. Without a directory the stage is not in the pipeline, and calls cost
// nothing. Loop's thread only.
class HookHosting {
 public:
  // How long a hanging directory keeps calls waiting at the start.
  static constexpr std::chrono::milliseconds kFirstRead{2'000};

  // All of the context and `inventory` outlive it; the calls that its stage looks at end first.
  HookHosting(const DoorContext& context, Inventory& inventory, HookHostingOptions options);
  ~HookHosting();

  void Start();
  // Applies to later calls. Servers of another directory take effect once it was read; until then
  // those of the former one do.
  void Configure(const HooksConfig& config);
  std::vector<PluginView> plugins() const;
  // A directory that is not read, and files of which a former version is in force.
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
  std::optional<hooks::HookDirectoryWatch> watch_;  // set while it serves; destroyed first
};

}  // namespace resmgr
