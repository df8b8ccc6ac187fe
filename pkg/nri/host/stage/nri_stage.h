// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/metrics/metrics.h"
#include "pkg/nri/host/mapping/host_file_finder.h"
#include "pkg/nri/host/mapping/runtime_traits.h"
#include "pkg/nri/host/merge/default_validator.h"
#include "pkg/nri/host/session/dispatch.h"
#include "pkg/nri/host/session/plugin_port.h"
#include "pkg/nri/host/stage/host_config.h"
#include "pkg/nri/host/stage/host_events.h"
#include "pkg/nri/host/stage/plugin_updates.h"
#include "pkg/nri/host/view/host_view.h"
#include "pkg/nri/host/view/image_cache.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/pipeline/stage.h"
#include "pkg/runtime/inventory.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

// Shows calls to NRI plugins and changes them as these want: the stage behind the policy. The
// policy's decisions are included in the plugins' requests.
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
  // All outlive the stage; its own calls to the runtime end with `runtime` or with End.
  struct Context {
    EventLoop& loop;
    RuntimeAccess& runtime;  // for its own requests
    resmgr::Inventory& inventory;
    Pipeline& pipeline;          // has this stage
    Metrics* metrics = nullptr;  // nullptr: no counting
  };

  NriStage(Context context, NriStageOptions options);

  // Learns of the runtime's objects, and removes files that a former run has left.
  void Start();
  // Applies options to later calls and questions. Changes of `start_before`, `profile_directory`
  // and `find_files` have no effect.
  void Configure(NriStageOptions options);
  // Sets the properties known from the runtime's version, and the pod handlers that the runtime has
  // announced.
  void SetTraits(const RuntimeTraits& traits, std::vector<HandlerFeatures> handlers);
  // The runtime has refused a container because it has no RDT: until the next configuration or
  // SetTraits no container gets a class.
  void NoteWithoutRdt();
  // Runs `done` once the runtime's objects are known.
  void WhenReady(std::function<void()> done) { view_.WhenReady(std::move(done)); }
  // Asks neither plugins nor runtime any more.
  void End();

  std::unique_ptr<StageCall> Begin(const Request& request) override;

  SharedSyncMessages Inventory(PluginPort& plugin) override;
  void OnReady(PluginPort& plugin, std::vector<api::ContainerUpdate> updates) override;
  void OnUpdateContainers(PluginPort& plugin, const api::UpdateContainersRequest& request,
                          Updated done) override;
  void OnLost(PluginPort& plugin, const Status& why) override;

  // Used by its calls.
  const NriStageOptions& nri_options() const { return nri_options_; }
  Budget NewBudget() const { return events_.NewBudget(); }
  Dispatcher& dispatcher() { return dispatcher_; }
  HostView& view() { return view_; }
  const HostView& view() const { return view_; }
  HostEvents& events() { return events_; }
  PluginUpdates& updates() { return updates_; }
  ImageCache& images() { return images_; }
  HostFileFinder& files() { return files_; }
  const std::optional<DefaultValidator>& validator() const { return validator_; }
  const RuntimeTraits& traits() const { return traits_; }
  RuntimeTraits traits(const HostPod& pod) const {
    return TraitsFor(traits_, handlers_, pod.message->runtime_handler());
  }
  RuntimeAccess& runtime() { return context_.runtime; }
  bool PlacementIsOwned() const { return context_.pipeline.PlacementIsOwned(); }
  // OK: all required plugins are connected, or the container of this pod needs none. nullptr: the
  // pod is unknown.
  Status CheckRequired(const HostPod* pod, std::string_view container) const;
  // How plugins are asked about the pod, or about its container with this name.
  Dispatcher::Kind RequestKind(const HostPod& pod, std::string_view container = {}) const;

  // Runs `begin` in a turn of the pod, unless the stage has ended.
  void InTurn(HostPod& pod, std::function<void(Turns::Turn)> begin);
  // Wraps a callback, so that it does nothing once the stage has ended.
  template <typename Result>
  std::function<void(Result)> WhileHere(std::function<void(Result)> done) {
    return lifetime_.Guard(std::move(done));
  }
  // Logs the lines about changes that the container does not get.
  void NoteLeftOut(const HostContainer& container, const std::vector<std::string>& lines);
  // Handles the end of a container, by a call or by itself: asks the runtime for details and tells
  // the plugins. `done` runs when they have answered.
  void TellStop(const HostContainerPtr& container, const Budget& budget,
                std::function<void()> done);

 private:
  HostView::Ends Ends();
  // Handles an event of a start: asks the runtime whether the container runs again.
  void LookAtStart(const HostContainerPtr& container);
  // Tells plugins that the runtime itself has started a container again that had ended, as Docker's
  // restart policies do; also of the end, if it was missed. They cannot refuse it. A start by a
  // call under way is told by the call.
  void TellRestart(const HostContainerPtr& container, const ContainerFacts& facts,
                   const Turns::Turn& turn);

  const Context context_;
  NriStageOptions nri_options_;
  Logger& log_;
  Dispatcher dispatcher_;
  HostView view_;
  PluginUpdates updates_;
  HostEvents events_;
  ImageCache images_;
  HostFileFinder files_;
  std::optional<DefaultValidator> validator_;
  RuntimeTraits traits_;
  std::vector<HandlerFeatures> handlers_;
  RateLimit evict_limit_;
  RateLimit warnings_limit_;
  Lifetime lifetime_;
};

}  // namespace resmgr::nri
