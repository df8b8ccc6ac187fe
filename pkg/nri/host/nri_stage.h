// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/nri/host/adjustment_mapping.h"
#include "pkg/nri/host/default_validator.h"
#include "pkg/nri/host/dispatch.h"
#include "pkg/nri/host/host_events.h"
#include "pkg/nri/host/host_file_finder.h"
#include "pkg/nri/host/host_inventory.h"
#include "pkg/nri/host/image_cache.h"
#include "pkg/nri/host/inventory_sync.h"
#include "pkg/nri/host/plugin_port.h"
#include "pkg/nri/host/plugin_updates.h"
#include "pkg/nri/host/runtime_traits.h"
#include "pkg/nri/host/stage_options.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/pipeline/stage.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

// Shows calls to NRI plugins and changes them as these want: the stage behind the policy. Plugins
// see the policy's decisions in what they are asked.
//
//   before the runtime  CreateContainer, UpdateContainerResources, UpdatePodSandboxResources,
//                       RemoveContainer
//   after it            RunPodSandbox, StartContainer: a refusal undoes them;
//                       PostCreate.., PostUpdate.., StopContainer, StopPodSandbox,
//                       RemovePodSandbox: the client waits, refusals are logged
//
// Loop's thread only. The host of the plugins, whose listener it is, ends first.
class NriStage final : public Stage, public PluginListener {
 public:
  // All outlive it; its own calls to the runtime end with `runtime` or with End.
  struct Context {
    EventLoop& loop;
    RuntimeAccess& runtime;
    Pipeline& pipeline;  // of which it is a stage
  };

  NriStage(Context context, NriStageOptions options);
  ~NriStage() override;

  // Learns what the runtime has, and removes what an earlier run has left.
  void Start();
  // For calls that come from now on, and for what the others ask next: all but `start_before`,
  // `profile_directory` and `find_files`.
  void Configure(NriStageOptions options);
  // What is known of the runtime by its version, and what it announces of its handlers of pods.
  void SetTraits(const RuntimeTraits& traits, std::vector<HandlerFeatures> handlers);
  // The runtime has refused a container since it has no RDT: until the next configuration none gets
  // a class of it.
  void NoteWithoutRdt();
  // Runs `done` once that is learned.
  void WhenReady(std::function<void()> done);
  // Nothing more is asked of plugins and runtime.
  void End();
  // The runtime, or a client to whom it told it, says that something happened.
  void OnContainerEvent(const ContainerEvent& event);

  std::unique_ptr<StageCall> Begin(const Request& request) override;

  SharedSyncMessages Inventory(PluginPort& plugin) override;
  void OnReady(PluginPort& plugin, std::vector<api::ContainerUpdate> updates) override;
  void OnUpdateContainers(PluginPort& plugin, const api::UpdateContainersRequest& request,
                          Updated done) override;
  void OnLost(PluginPort& plugin, const Status& why) override;

  // For its calls.
  const NriStageOptions& nri_options() const { return nri_options_; }
  Budget NewBudget() const { return events_.NewBudget(); }
  Dispatcher& dispatcher() { return dispatcher_; }
  HostInventory& inventory() { return inventory_; }
  const HostInventory& inventory() const { return inventory_; }
  HostEvents& events() { return events_; }
  PluginUpdates& updates() { return updates_; }
  InventorySync& sync() { return sync_; }
  ImageCache& images() { return images_; }
  HostFileFinder& files() { return files_; }
  const std::optional<DefaultValidator>& validator() const { return validator_; }
  const RuntimeTraits& traits() const { return traits_; }
  RuntimeTraits traits(const HostPod& pod) const {
    return TraitsFor(traits_, handlers_, pod.message->runtime_handler());
  }
  RuntimeAccess& runtime() { return context_.runtime; }
  bool PlacementIsOwned() const { return context_.pipeline.PlacementIsOwned(); }
  // OK: all required plugins are connected.
  Status CheckRequired() const;

  // Runs it in a turn of the pod, unless the stage has ended.
  void InTurn(HostPod& pod, std::function<void(Turns::Turn)> begin);
  // For answers of others: nothing once the stage has ended.
  template <typename Result>
  std::function<void(Result)> WhileHere(std::function<void(Result)> done) {
    return lifetime_.Guard(std::move(done));
  }
  // Lines about what plugins want and the container does not get.
  void NoteLeftOut(const HostContainer& container, const std::vector<std::string>& lines);
  // The container has ended, by a call or by itself: asks how and tells the plugins. `done` runs
  // when they have answered.
  void TellStop(const HostContainerPtr& container, const Budget& budget,
                std::function<void()> done);
  // It does not exist any more.
  void TellRemoval(const HostContainerPtr& container, const Budget& budget,
                   std::function<void()> done);

 private:
  const Context context_;
  NriStageOptions nri_options_;
  Logger& log_;
  Dispatcher dispatcher_;
  HostInventory inventory_;
  PluginUpdates updates_;
  HostEvents events_;
  ImageCache images_;
  HostFileFinder files_;
  std::optional<DefaultValidator> validator_;
  RuntimeTraits traits_;
  std::vector<HandlerFeatures> handlers_;
  InventorySync sync_;
  RateLimit evict_limit_;
  RateLimit warnings_limit_;
  Lifetime lifetime_;
};

}  // namespace resmgr::nri
