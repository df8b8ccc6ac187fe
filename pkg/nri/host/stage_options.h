// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/nri/host/default_validator.h"
#include "pkg/nri/host/host_files.h"
#include "pkg/nri/host/unsupported_policy.h"

namespace resmgr::nri {

// What the stage of the plugins does (nri_stage.h).
struct NriStageOptions {
  // For all plugins together, for each thing that they are asked in a call: a kubelet gives a call
  // two minutes.
  std::chrono::milliseconds budget{20'000};
  // Plugins hear of StartContainer before the runtime does and may refuse it; the container has no
  // process and no cgroup then, which many plugins count on.
  bool start_before = false;
  // Index and name, or the name alone: no container is created while one of them is away.
  std::vector<std::string> required{};
  // What plugins may not do; nullopt: everything may be done.
  std::optional<DefaultValidatorOptions> validator{};
  // What happens where a plugin wants what the CRI cannot express.
  UnsupportedPolicy unsupported{};
  // Where seccomp profiles are written that plugins make.
  std::string profile_directory = "/run/cri-resmgr/nri-seccomp";
  // What looks at the node's files, on threads of its own.
  std::function<StatusOr<FoundFiles>(const HostFiles& files, const std::string& profile_path)>
      find_files = FindHostFiles;
};

}  // namespace resmgr::nri
