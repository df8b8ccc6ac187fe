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

  // Takes claims from environment variables, too. A container shows its claims by CDI devices,
  // which only kubelets set, but most runtimes show an NRI plugin only the variables that were made
  // from these. Users may set any variable: if its claim is not held it is ignored, and if the
  // claim is for other pods the container is refused.
  void TakeClaimsFromVariables() { claims_in_variables_ = true; }

  std::unique_ptr<StageCall> Begin(const Request& request) override;
  // True unless the policy is `null`, which places nothing.
  bool OwnsPlacement() const override;
  void OnSetByStage(const ContainerId& id, const ResourceValues& values, bool accepted) override {
    manager_.set_later().SetByStage(id, values, accepted);
  }

  ResourceManager& manager() { return manager_; }
  HintFinder& hints() { return hints_; }
  DeviceHints* devices() { return devices_; }
  bool claims_in_variables() const { return claims_in_variables_; }
  Status Connect() const { return connect_(); }
  // Warns that the container shows this device or variable, for which no claim is held.
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
