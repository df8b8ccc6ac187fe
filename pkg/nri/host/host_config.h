// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/nri_config.h"
#include "pkg/nri/host/default_validator.h"
#include "pkg/nri/host/host_options.h"
#include "pkg/nri/host/stage_options.h"
#include "pkg/nri/host/unsupported_policy.h"

namespace resmgr::nri {

// What the configuration `nri.Host` says to each part of the host.

// How plugins are served, all but the metrics.
HostOptions HostOptionsOf(const NriHostConfig& config);

// What they may not do, and which of them must have taken part.
DefaultValidatorOptions ValidatorOptionsOf(const NriHostConfig& config);

// What follows where they want what the CRI cannot express. InvalidArgument: there is no such
// field. "DeviceRules" are the rules for devices, which have no name in NRI.
StatusOr<UnsupportedPolicy> UnsupportedPolicyOf(const NriHostConfig& config);

// Those without which no container is created: "10-logger".
std::vector<std::string> RequiredPluginsOf(const NriHostConfig& config);

// All that the stage does by it. The names of fields were checked, by UnsupportedPolicyOf.
NriStageOptions StageOptionsOf(const NriHostConfig& config);

}  // namespace resmgr::nri
