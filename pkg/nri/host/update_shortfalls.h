// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/nri/host/resource_mapping.h"
#include "pkg/nri/host/runtime_traits.h"
#include "pkg/nri/host/unsupported_policy.h"

namespace resmgr::nri {

// Takes out of an update of a container that exists what the CRI cannot express (ShortfallsOf), so
// that the rest can be sent and plugins are never shown what the runtime did not get. Returns one
// line for each field that is left out, fit for the log. FailedPrecondition: the policy refuses a
// field; the resources stay as they are then. Pure function.
StatusOr<std::vector<std::string>> LeaveOutShortfalls(const RuntimeTraits& traits,
                                                      const UnsupportedPolicy& policy,
                                                      api::LinuxResources& resources);

}  // namespace resmgr::nri
