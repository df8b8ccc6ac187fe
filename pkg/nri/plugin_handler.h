// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/nri/host_version.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// What a runtime says of itself when it configures a plugin.
struct HostInfo {
  std::string runtime_name;     // "containerd"
  std::string runtime_version;  // "1.7.24"
  ApiVersion version;           // of its NRI
};

// Answers a runtime for a plugin. Everything is called on the loop's thread and decides at once: a
// runtime waits for two seconds by default and then drops the plugin, so nothing here may wait for
// a disk, another process or a reply. It must not destroy the connection.
class PluginHandler {
 public:
  virtual ~PluginHandler() = default;

  // A runtime has taken the plugin. Its pods and containers follow in OnSynchronize.
  virtual void OnConfigured(const HostInfo& host) = 0;
  // All pods and containers (created or running) that there are; the changes of containers that
  // the response has are carried out by the runtime. Called once for each connection.
  virtual api::SynchronizeResponse OnSynchronize(const api::SynchronizeRequest& all) = 0;
  // An error refuses the creation; people read it in the events of the pod.
  virtual StatusOr<api::CreateContainerResponse> OnCreateContainer(
      const api::CreateContainerRequest& request) = 0;
  // An error refuses the update.
  virtual StatusOr<api::UpdateContainerResponse> OnUpdateContainer(
      const api::UpdateContainerRequest& request) = 0;
  // The container was stopped or ended by itself.
  virtual api::StopContainerResponse OnStopContainer(const api::StopContainerRequest& request) = 0;
  virtual void OnUpdatePodSandbox(const api::UpdatePodSandboxRequest& request) = 0;
  // What all plugins together make of a container; an error refuses its creation.
  virtual Status OnValidate(const api::ValidateContainerAdjustmentRequest& request) = 0;
  // The other events, which cannot be refused. `event.container` is empty for those of pods.
  virtual void OnEvent(const api::StateChangeEvent& event) = 0;
  // The connection of which OnConfigured was told is lost.
  virtual void OnDisconnected(const Status& why) = 0;
};

}  // namespace resmgr::nri
