// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "pkg/cri/hint_finder.h"
#include "pkg/cri/interception.h"
#include "pkg/cri/messages.h"
#include "pkg/resmgr/resource_manager.h"

namespace resmgr {

// Tells the brain what passes and puts its decisions into the requests:
//
//   before and after  CreateContainer, StartContainer, UpdateContainerResources
//   after only        RunPodSandbox, StopPodSandbox, RemovePodSandbox, StopContainer,
//                     RemoveContainer, ContainerStatus, UpdatePodSandboxResources
//
// A message that cannot be decoded passes as it came: the runtime says what it thinks of it.
class ResourceInterceptor final : public Interceptor {
 public:
  // `connect` makes sure that there is a connection to the runtime, now; its error refuses the
  // call. `hints` is asked for policies that want hints.
  ResourceInterceptor(ResourceManager& manager, HintFinder& hints, std::function<Status()> connect)
      : brain_{.manager = manager, .hints = hints, .connect = std::move(connect)} {}

  // What interceptions work with.
  struct Brain {
    ResourceManager& manager;
    HintFinder& hints;
    std::function<Status()> connect;
    size_t interceptions = 0;  // that are left
    CreationSuffix creation_suffix{};
    std::string update_suffix{};  // of the message that is being answered; kept for its room
  };

  std::unique_ptr<Interception> Begin(const Method& method) override;

  // No interception of its making is left.
  bool idle() const { return brain_.interceptions == 0; }

 private:
  Brain brain_;
};

}  // namespace resmgr
