// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "pkg/nri/early_updates.h"
#include "pkg/nri/event_call.h"
#include "pkg/nri/plugin_connection.h"
#include "pkg/nri/plugin_handler.h"
#include "pkg/nri/runtime_mirror.h"
#include "pkg/nri/update_queue.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::nri {

// A runtime's NRI as a front door: its events are calls of the pipeline, and what is decided goes
// into its answers. Other containers that have to move for a container's sake are updates in the
// same answer, which the runtime carries out before it creates, updates or forgets that container.
//
// Updates of a container that does not run yet are sent again when it does (early_updates.h).
//
// What NRI does not let a plugin do: hold a start until others have left its CPUs. containerd
// carries out no update while an event is not answered, so a start that would have to wait goes on,
// and is learned from the event that follows it.
//
// Loop's thread only.
class PluginFront final : public PluginHandler, public RuntimeClient {
 public:
  struct Options {
    PluginConnection::Options connection{};
    // After so long an event is answered although it is not decided: a runtime waits for two
    // seconds unless it is told otherwise, and then drops the plugin. A creation is refused then,
    // and everything else goes on without a change.
    std::chrono::milliseconds patience{1'400};
    // For runtimes whose NRI is not safe to ask for updates (update_queue.h).
    UpdateQueue::ByCri by_cri{};
  };
  struct Events {
    std::function<void()> connected{};     // the inventory is known
    std::function<void()> disconnected{};  // after it was connected
    // What the runtime did, where that may not have been expected.
    std::function<void(const ContainerEvent&)> happened{};
    // What this container was sent counted as done, and may not be in force.
    std::function<void(const ContainerId&)> doubtful{};
  };

  // The references outlive it. `options.connection` has passed PluginConnection::Check.
  PluginFront(EventLoop& loop, Pipeline& pipeline, Options options, Events events);
  ~PluginFront() override;

  // Connects now or as soon as there is a runtime.
  void Start() { connection_->Start(); }
  // The same over a socket that is connected, and over no other.
  void StartOn(UniqueFd socket) { connection_->StartOn(std::move(socket)); }
  // Unavailable: there is no runtime, or its inventory is not known yet.
  Status EnsureConnected() const;
  // Whether the runtime's NRI is not safe to ask for updates, which its CRI is asked for then.
  bool asks_cri() const { return connected_ && updates_.asks_cri(); }
  // Events that are being decided.
  size_t pending() const { return calls_.size(); }

  void UpdateContainer(const ContainerId& id, const ResourceValues& values,
                       std::function<void(Status)> done) override;
  void UpdateContainers(std::span<const Update> updates, UpdatesDone done) override;
  // What the runtime has told so far: nothing is asked, so nothing is skipped.
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override;
  bool ListsTellNews() const override { return false; }

 private:
  // What the answer to an event is made of.
  using Decided = EventCall::Decided;
  struct Running;

  void OnConfigured(const HostInfo& host) override {
    updates_.SetHost(host.version, options_.by_cri);
  }
  api::SynchronizeResponse OnSynchronize(const api::SynchronizeRequest& all) override;
  void OnCreateContainer(const api::CreateContainerRequest& request,
                         Reply<WithUpdates<api::CreateContainerResponse>> reply) override;
  void OnUpdateContainer(const api::UpdateContainerRequest& request,
                         Reply<WithUpdates<api::UpdateContainerResponse>> reply) override;
  void OnStopContainer(const api::StopContainerRequest& request,
                       Reply<WithUpdates<api::StopContainerResponse>> reply) override;
  void OnUpdatePodSandbox(const api::UpdatePodSandboxRequest& request,
                          Reply<api::UpdatePodSandboxResponse> reply) override;
  void OnEvent(const api::StateChangeEvent& event, Reply<api::Empty> reply) override;
  void OnDisconnected(const Status& why) override;

  // Makes the call of an event; Start sends it through the pipeline and answers when it is decided,
  // or when the runtime should not wait any more.
  Running& Begin(Operation operation, ContainerDetails details = {});
  void Start(Running& running, Decided decided, std::function<void()> too_late);
  void Forget(Running& running);
  // With what has to change of others for the sake of the event's own container.
  template <typename Response>
  WithUpdates<Response> WithOthers(const ContainerId& own, const Response& response);
  // What the container was sent so far may have come too early.
  void SendAgain(const ContainerId& id);
  void TakeTold(const api::Container& container);
  void OnPodEvent(const api::StateChangeEvent& event, Operation operation,
                  const Reply<api::Empty>& reply);
  void OnStart(const api::StateChangeEvent& event, const Reply<api::Empty>& reply);

  EventLoop& loop_;
  Pipeline& pipeline_;
  const Options options_;
  const Events events_;
  Logger& log_;
  RuntimeMirror mirror_;
  EarlyUpdates early_;
  UpdateQueue updates_;
  bool connected_ = false;
  std::list<std::unique_ptr<Running>> calls_;
  // Last, so that it ends first.
  std::unique_ptr<PluginConnection> connection_;
};

}  // namespace resmgr::nri
