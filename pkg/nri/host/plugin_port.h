// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"
#include "pkg/nri/host/sync_messages.h"

namespace resmgr::nri {

// How one plugin is treated (configuration `nri.Host.Plugins`).
struct PluginSettings {
  // What follows where it does not answer in time or is lost: a request goes on without it, or is
  // refused. Its own refusals always count.
  FailurePolicy failure = FailurePolicy::kIgnore;
  std::chrono::milliseconds request_timeout{2'000};
  // Containers are created only while it is connected, and when it has answered.
  bool required = false;
  // It gets the runtime's ids of containers as soon as there are any, for those that look into
  // cgroups. A container then changes its id after its creation; else it never does.
  bool real_ids = false;
};

// A plugin that is connected to our host, as its callers see it. Each question is answered
// once, later or at once; questions to one plugin are asked one after the other, in their order:
// plugins of the field know no other order, and most are not made for two at a time. Answers:
//   OK, with what the plugin wants;
//   DeadlineExceeded: none within `timeout`, counted from here (time in the queue included);
//   Unavailable: the plugin is lost, or the question is longer than NRI can carry;
//   any other status: what the plugin itself answered; it refuses.
// Loop's thread only.
class PluginPort {
 public:
  template <typename Response>
  using Done = std::function<void(StatusOr<Response>)>;

  virtual ~PluginPort() = default;

  // Index and name, by which plugins are ordered: "10-logger".
  virtual const std::string& full_name() const = 0;
  virtual const PluginSettings& settings() const = 0;
  // It has subscribed to the event.
  virtual bool Wants(api::Event event) const = 0;

  // `request` is an encoded CreateContainerRequest.
  virtual void Create(std::string request, std::chrono::milliseconds timeout,
                      Done<api::CreateContainerResponse> done) = 0;
  virtual void Update(const api::UpdateContainerRequest& request, std::chrono::milliseconds timeout,
                      Done<api::UpdateContainerResponse> done) = 0;
  virtual void Stop(const api::StopContainerRequest& request, std::chrono::milliseconds timeout,
                    Done<api::StopContainerResponse> done) = 0;
  virtual void UpdatePod(const api::UpdatePodSandboxRequest& request,
                         std::chrono::milliseconds timeout,
                         Done<api::UpdatePodSandboxResponse> done) = 0;
  virtual void Validate(const api::ValidateContainerAdjustmentRequest& request,
                        std::chrono::milliseconds timeout,
                        Done<api::ValidateContainerAdjustmentResponse> done) = 0;
  // Ends the connection: what is asked and not answered yet is Unavailable, as is what is asked
  // later.
  virtual void End(const Status& why) = 0;
  // All other events, by the method that the plugin has for it, or by StateChange.
  virtual void Notify(const api::StateChangeEvent& event, std::chrono::milliseconds timeout,
                      Done<api::Empty> done) = 0;
};

// The owner of pods and containers, towards the host of the connections. Loop's thread only.
class PluginListener {
 public:
  virtual ~PluginListener() = default;

  // All pods and containers that there are, for a plugin that has just been configured. Events that
  // come from now on are to be asked of its port: they follow behind this one.
  virtual SharedSyncMessages Inventory(PluginPort& plugin) = 0;
  // It has taken them and may be asked; it wants these changes.
  virtual void OnReady(PluginPort& plugin, std::vector<api::ContainerUpdate> updates) = 0;
  // A plugin that is ready asks for changes of its own accord. `done` gets those that failed.
  using Updated = std::function<void(std::vector<api::ContainerUpdate> failed)>;
  virtual void OnUpdateContainers(PluginPort& plugin, const api::UpdateContainersRequest& request,
                                  Updated done) = 0;
  // A plugin of which Inventory was told is lost. Its port answers Unavailable from now on, and is
  // gone with the end of the loop's turn.
  virtual void OnLost(PluginPort& plugin, const Status& why) = 0;
};

}  // namespace resmgr::nri
