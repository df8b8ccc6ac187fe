// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/nri/host/mapping/resource_mapping.h"
#include "pkg/nri/host/mapping/runtime_traits.h"
#include "pkg/nri/host/mapping/unsupported_policy.h"

namespace resmgr::nri {

// Removes values that the CRI cannot express (ShortfallsOf) from an update of an existing
// container, so that the rest can be sent and plugins never see values that the runtime did not
// get. Returns one printable line for each removed field. kFailedPrecondition: the policy refuses a
// field; the resources stay unchanged then. Pure function.
StatusOr<std::vector<std::string>> LeaveOutShortfalls(const RuntimeTraits& traits,
                                                      const UnsupportedPolicy& policy,
                                                      api::LinuxResources& resources);

}  // namespace resmgr::nri
