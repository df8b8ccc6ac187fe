// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "pkg/docker/engine_inventory.h"
#include "pkg/node/front_door.h"
#include "pkg/node/hook_hosting.h"
#include "pkg/node/nri_hosting.h"

namespace resmgr {

struct DockerDoorOptions {
  std::string socket{};         // for clients of the Docker API
  std::string engine_socket{};  // dockerd's
  docker::Others others = docker::Others::kPass;
  // Hook servers are asked after the policy, and hosted NRI plugins after the hook servers.
  HookHostingOptions hooks{};
  std::optional<NriHostingOptions> nri_host{};
};

// The Docker API (pkg/docker/docker_front.h) as a front door: clients connect to its socket, and
// each brain has its own connections to dockerd.
FrontDoorFactory DockerDoorFactory(DockerDoorOptions options);

}  // namespace resmgr
