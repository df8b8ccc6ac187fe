// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/cri/interception.h"
#include "pkg/resmgr/resource_manager.h"

namespace resmgr {

// Tells the brain what passes and puts its decisions into the requests:
//
//   before and after  CreateContainer, StartContainer, UpdateContainerResources
//   after only        RunPodSandbox, StopPodSandbox, RemovePodSandbox, StopContainer,
//   RemoveContainer
//
// A message that cannot be decoded passes as it came: the runtime says what it thinks of it.
class ResourceInterceptor final : public Interceptor {
 public:
  explicit ResourceInterceptor(ResourceManager& manager) : manager_(manager) {}

  std::unique_ptr<Interception> Begin(const Method& method) override;

 private:
  ResourceManager& manager_;
};

}  // namespace resmgr
