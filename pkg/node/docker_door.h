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
  std::string socket{};         // where clients of the Docker API connect
  std::string engine_socket{};  // dockerd's
  docker::Others others = docker::Others::kPass;
  // Hook servers are asked behind the policy, and NRI plugins, if they are hosted, behind these.
  HookHostingOptions hooks{};
  std::optional<NriHostingOptions> nri_host{};
};

// The Docker API (pkg/docker/docker_front.h) as a front door: clients connect to its socket, and
// each brain has connections to dockerd of its own.
FrontDoorFactory DockerDoorFactory(DockerDoorOptions options);

}  // namespace resmgr
