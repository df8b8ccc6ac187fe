// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pkg/cri/backends.h"
#include "pkg/cri/handler_aliases.h"
#include "pkg/node/front_door.h"
#include "pkg/node/hook_hosting.h"
#include "pkg/node/nri_hosting.h"
#include "pkg/pipeline/stage.h"

namespace resmgr {

struct RelayDoorOptions {
  std::string relay_socket{};  // for the kubelet
  std::string runtime_socket{};
  // The socket for image calls; nullopt: not served.
  std::optional<std::string> image_socket{};
  // Further runtimes, by the handlers of their pods; runtime_socket is the default one.
  std::vector<Backends::Backend> runtimes{};
  // The runtimes' handlers, by their aliases.
  HandlerAliases::Table aliases{};
  // Stages at their ranks (StageRank); stages of one rank in this order. They outlive the door.
  std::vector<Stage*> stages{};
  // For asking hook servers. Another configuration may change the directory, the timeout and which
  // pods are skipped.
  HookHostingOptions hooks{};
  // For hosting NRI plugins; nullopt: none are hosted.
  std::optional<NriHostingOptions> nri_host{};
};

// The CRI relay (pkg/cri/relay.h) as a front door: clients connect to the relay's socket, and each
// brain has its own CRI connections to the runtimes.
FrontDoorFactory RelayDoorFactory(RelayDoorOptions options);

}  // namespace resmgr
