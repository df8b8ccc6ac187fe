// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/nri/host/mapping/host_files.h"
#include "pkg/nri/host/mapping/unsupported_policy.h"
#include "pkg/nri/host/merge/default_validator.h"

namespace resmgr::nri {

// Options of the plugins' stage (nri_stage.h).
struct NriStageOptions {
  // Time for all plugins together, for each question in a call: a kubelet gives a call two minutes.
  std::chrono::milliseconds budget{20'000};
  // Plugins get StartContainer before the runtime and may refuse it; the container has no process
  // and no cgroup at this time, which many plugins expect.
  bool start_before = false;
  // Index and name, or the name alone: no container is created while one of them is away.
  std::vector<std::string> required{};
  // Forbidden changes; nullopt: all are allowed.
  std::optional<DefaultValidatorOptions> validator{};
  // The policy for changes that the CRI cannot express.
  UnsupportedPolicy unsupported{};
  // Directory of the seccomp profiles that plugins make.
  std::string profile_directory = "/run/cri-resmgr/nri-seccomp";
  // Looks up the node's files, on threads of its own.
  std::function<StatusOr<FoundFiles>(const HostFiles& files, const std::string& profile_path)>
      find_files = FindHostFiles;
};

}  // namespace resmgr::nri
