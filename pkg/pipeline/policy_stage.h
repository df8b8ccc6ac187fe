// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/log/rate_limit.h"
#include "pkg/pipeline/hint_finder.h"
#include "pkg/pipeline/stage.h"
#include "pkg/resmgr/resource_manager.h"

namespace resmgr {

// The first stage: asks the resource manager for decisions and reports the runtime's actions to it.
//
//   before and after  CreateContainer, StartContainer, UpdateContainerResources
//   after only        RunPodSandbox, StopPodSandbox, RemovePodSandbox, StopContainer,
//                     RemoveContainer, ContainerStatus, UpdatePodSandboxResources
//
// The reply to ContainerStatus shows the numbers that the client asked for.
//
// It has no deadline: the manager itself ends long waits. Loop's thread only.
class PolicyStage final : public Stage {
 public:
  // `connect` ensures that there is a connection to the runtime; its error refuses the call.
  // `hints` is used for policies that need hints, and `devices`, unless nullptr, for those that
  // need hints from the kubelet. All of them outlive the stage.
  PolicyStage(ResourceManager& manager, HintFinder& hints, std::function<Status()> connect,
              DeviceHints* devices = nullptr);

  // Containers show the claims that they carry by CDI devices, which only kubelets set. Here also
  // by variables, as on an NRI plugin: most runtimes show it no CDI devices but the variables that
  // they made of these. Users may set any variable, so one counts only where its claim is held, and
  // only for a pod that the claim is for.
  void TakeClaimsFromVariables() { claims_in_variables_ = true; }

  std::unique_ptr<StageCall> Begin(const Request& request) override;
  // True unless the policy is `null`, which places nothing.
  bool OwnsPlacement() const override;
  void OnSetByStage(const ContainerId& id, const ResourceValues& values, bool accepted) override {
    manager_.SetByStage(id, values, accepted);
  }

  ResourceManager& manager() { return manager_; }
  HintFinder& hints() { return hints_; }
  DeviceHints* devices() { return devices_; }
  bool claims_in_variables() const { return claims_in_variables_; }
  Status Connect() const { return connect_(); }
  // The container shows a claim by this device or variable, which counts for nothing.
  void WarnOfClaim(std::string_view shown, std::string_view container);

 private:
  ResourceManager& manager_;
  HintFinder& hints_;
  DeviceHints* const devices_;
  const std::function<Status()> connect_;
  RateLimit claim_warnings_;
  bool claims_in_variables_ = false;
};

}  // namespace resmgr
