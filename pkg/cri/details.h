// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/model/container_details.h"

namespace resmgr {

// Adds these parts of a CreateContainerRequest (CRI runtime.v1) to `details`, in the order of the
// message; `config` and `sandbox_config` are its fields 2 and 3. The CRI has neither resource
// limits nor OCI hooks. False: a message is malformed, and some of the parts are missing.
bool DecodeDetails(std::string_view config, std::string_view sandbox_config, DetailSet parts,
                   ContainerDetails& details);

// The same for an UpdateContainerResourcesRequest, which has only Detail::kResources.
bool DecodeUpdateDetails(std::string_view message, DetailSet parts, ContainerDetails& details);

}  // namespace resmgr
