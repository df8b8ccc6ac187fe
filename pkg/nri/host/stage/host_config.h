// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/nri_config.h"
#include "pkg/nri/host/mapping/host_files.h"
#include "pkg/nri/host/mapping/resource_mapping.h"
#include "pkg/nri/host/merge/default_validator.h"
#include "pkg/nri/host/session/host_options.h"

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
  std::optional<NriValidatorConfig> validator{};
  // The policy for changes that the CRI cannot express.
  UnsupportedPolicy unsupported{};
  // Directory of the seccomp profiles that plugins make.
  std::string profile_directory = "/run/cri-resmgr/nri-seccomp";
  // Looks up the node's files, on threads of its own.
  std::function<StatusOr<FoundFiles>(const HostFiles& files, const std::string& profile_path)>
      find_files = FindHostFiles;
};

// Converts the configuration `nri.Host` to the options of the host's parts.

// Options for serving plugins, without the metrics.
HostOptions HostOptionsOf(const NriHostConfig& config);

// The policy for changes that the CRI cannot express. kInvalidArgument: an unknown field.
// "DeviceRules" are the rules for devices, which have no name in NRI.
StatusOr<UnsupportedPolicy> UnsupportedPolicyOf(const NriHostConfig& config);

// The plugins without which no container is created: "10-logger".
std::vector<std::string> RequiredPluginsOf(const NriHostConfig& config);

// The stage's options. UnsupportedPolicyOf has checked the names of fields before.
NriStageOptions StageOptionsOf(const NriHostConfig& config);

}  // namespace resmgr::nri
