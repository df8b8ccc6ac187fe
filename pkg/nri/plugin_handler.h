// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/nri/protocol.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// The runtime's description of itself when it configures a plugin.
struct HostInfo {
  std::string runtime_name;     // "containerd"
  std::string runtime_version;  // "1.7.24"
  ApiVersion version;           // of its NRI
  // The longest time for which it waits for the answer to an event. Older hosts do not tell it.
  std::chrono::milliseconds request_timeout{2'000};
};

// An encoded response with changes of containers. A decision can change hundreds of containers,
// which are encoded without building messages.
template <typename Response>
struct WithUpdates {
  // NOLINTNEXTLINE(google-explicit-constructor): a response alone is one without changes.
  WithUpdates(const Response& alone) : encoded(alone.SerializeAsString()) {}

  std::string encoded;  // an encoded Response; changes are appended as fields
};

// Answers a runtime for a plugin, on the loop's thread. A runtime waits for its request_timeout and
// then drops the plugin, so later answers must come well before. It must not destroy the
// connection.
class PluginHandler {
 public:
  virtual ~PluginHandler() = default;

  // The answer to an event, given once, at once or later; an error status becomes the answer's
  // error. Has no effect once the connection is lost.
  template <typename Response>
  using Reply = std::function<void(StatusOr<Response>)>;

  // A runtime has accepted the plugin. Its pods and containers follow in OnSynchronize.
  virtual void OnConfigured(const HostInfo& host) = 0;
  // All existing pods and containers (created or running); the runtime carries out the changes in
  // the response. Called once for each connection.
  virtual api::SynchronizeResponse OnSynchronize(const api::SynchronizeRequest& all) = 0;
  // An error refuses the creation; users read it in the events of the pod.
  virtual void OnCreateContainer(const api::CreateContainerRequest& request,
                                 Reply<WithUpdates<api::CreateContainerResponse>> reply) = 0;
  // An error refuses the update.
  virtual void OnUpdateContainer(const api::UpdateContainerRequest& request,
                                 Reply<WithUpdates<api::UpdateContainerResponse>> reply) = 0;
  // The container was stopped or ended by itself.
  virtual void OnStopContainer(const api::StopContainerRequest& request,
                               Reply<WithUpdates<api::StopContainerResponse>> reply) = 0;
  // An error refuses the update.
  virtual void OnUpdatePodSandbox(const api::UpdatePodSandboxRequest& request,
                                  Reply<api::UpdatePodSandboxResponse> reply) = 0;
  // The other events. `event.container` is empty for those of pods. An error refuses RunPodSandbox
  // and StartContainer.
  virtual void OnEvent(const api::StateChangeEvent& event, Reply<api::Empty> reply) = 0;
  // The connection announced by OnConfigured is lost.
  virtual void OnDisconnected(const Status& why) = 0;
};

}  // namespace resmgr::nri
