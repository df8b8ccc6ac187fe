// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/nri_config.h"
#include "pkg/nri/host/mapping/unsupported_policy.h"
#include "pkg/nri/host/merge/default_validator.h"
#include "pkg/nri/host/session/host_options.h"
#include "pkg/nri/host/stage/stage_options.h"

namespace resmgr::nri {

// Converts the configuration `nri.Host` to the options of the host's parts.

// Options for serving plugins, without the metrics.
HostOptions HostOptionsOf(const NriHostConfig& config);

// Forbidden changes and required plugins.
DefaultValidatorOptions ValidatorOptionsOf(const NriHostConfig& config);

// The policy for changes that the CRI cannot express. kInvalidArgument: an unknown field.
// "DeviceRules" are the rules for devices, which have no name in NRI.
StatusOr<UnsupportedPolicy> UnsupportedPolicyOf(const NriHostConfig& config);

// The plugins without which no container is created: "10-logger".
std::vector<std::string> RequiredPluginsOf(const NriHostConfig& config);

// The stage's options. UnsupportedPolicyOf has checked the names of fields before.
NriStageOptions StageOptionsOf(const NriHostConfig& config);

}  // namespace resmgr::nri
