// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "pkg/nri/event_call.h"
#include "pkg/nri/plugin_connection.h"
#include "pkg/nri/plugin_handler.h"
#include "pkg/nri/runtime_mirror.h"
#include "pkg/nri/update_queue.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

// A runtime's NRI as a front door: its events are calls of the pipeline, and the decisions become
// its answers. Other containers that have to move are updates in the same answer, which the runtime
// carries out before it creates, updates or forgets the event's container.
//
// Updates of a container that does not run yet are sent again when it does (EarlyUpdates).
//
// NRI does not let a plugin hold a start until others have left its CPUs: containerd carries out no
// update while an event is unanswered. Such a start goes on, and the event that follows it reports
// it.
//
// Loop's thread only.
class PluginFront final : public PluginHandler, public RuntimeClient {
 public:
  struct Options {
    PluginConnection::Options connection{};
    // After this time an event is answered although it is not decided: a runtime waits two seconds
    // by default, and then drops the plugin. A creation is refused then; all other events go on
    // unchanged. Before that, stages are left out whose failure is ignored. A start does not wait
    // even this long. If the runtime waits for less, it is 70 % of the runtime's time.
    std::chrono::milliseconds patience{1'400};
    // The longest time for which a decided answer waits for updates that UpdatesFollow announced;
    // at most 20 % of the runtime's time.
    std::chrono::milliseconds updates_patience{400};
    // For runtimes whose NRI cannot safely be asked for updates (update_queue.h).
    UpdateQueue::ByCri by_cri{};
  };
  struct Events {
    std::function<void()> connected{};     // the inventory is known
    std::function<void()> disconnected{};  // follows connected
    // Reports an action of the runtime that may be unexpected.
    std::function<void(const ContainerEvent&)> happened{};
    // Updates of this container were reported as done, but may have had no effect.
    std::function<void(const ContainerId&)> doubtful{};
  };

  // The references outlive this object. `options.connection` has passed PluginConnection::Check.
  PluginFront(EventLoop& loop, Pipeline& pipeline, Options options, Events events);
  ~PluginFront() override;

  // Connects now or as soon as a runtime serves the socket.
  void Start() { connection_->Start(); }
  // Uses this connected socket, and no other.
  void StartOn(UniqueFd socket) { connection_->StartOn(std::move(socket)); }
  // kUnavailable: there is no runtime, or its inventory is not known yet.
  Status EnsureConnected() const;
  // Whether updates go to the runtime's CRI because its NRI cannot safely be asked.
  bool asks_cri() const { return connected_ && updates_.asks_cri(); }
  // The NRI of the runtime that accepted this plugin last; 0.0.0 before.
  ApiVersion host_version() const { return host_version_; }
  // Number of events that are being decided.
  size_t pending() const { return calls_.size(); }

  void UpdateContainer(const ContainerId& id, const ResourceValues& values,
                       std::function<void(Status)> done) override;
  void UpdateContainers(std::span<const Update> updates, UpdatesDone done) override;
  std::shared_ptr<const void> UpdatesFollow() override;
  // Returns the state that the runtime has reported so far: it is not asked, so nothing is skipped.
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override;
  bool ListsTellNews() const override { return false; }

 private:
  // Builds the answer to an event.
  using Decided = EventCall::Decided;
  struct Running;

  void OnConfigured(const HostInfo& host) override;
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

  // Creates the call of an event; Start sends it through the pipeline and answers when it is
  // decided, or when the runtime should not wait any more.
  Running& Begin(Operation operation, ContainerDetails details = {});
  void Start(Running& running, Decided decided, std::function<void()> too_late);
  void Forget(Running& running);
  // Replies to an event of container `own` with the response and the waiting changes of other
  // containers. If changes are announced, it waits for them.
  template <typename Response>
  void Answer(const ContainerId& own, Response response, Reply<WithUpdates<Response>> reply);
  void SendAnswers();
  // Adds a container that has not ended and of which neither the inventory nor a creation has told:
  // the runtime created it while this plugin registered.
  void Learn(const api::PodSandbox& pod, const api::Container& shown);
  // Has the container's updates sent again if they may have come too early.
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
  ApiVersion host_version_;
  // Those in the options, or shorter ones for a runtime that waits for less time.
  std::chrono::milliseconds patience_;
  std::chrono::milliseconds updates_patience_;
  std::list<std::unique_ptr<Running>> calls_;
  std::weak_ptr<const void> announced_;         // not expired: updates follow
  std::vector<std::function<void()>> answers_;  // replies that wait for them
  EventLoop::HandlePtr answers_deadline_;
  Lifetime lifetime_;
  // Declared last, so that it is destroyed first.
  std::unique_ptr<PluginConnection> connection_;
};

}  // namespace resmgr::nri
