// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"
#include "pkg/docker/engine_inventory.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::docker {

// What dockerd tells of one thing, as stages take it (pkg/pipeline/runtime_access.h).
// kInvalidArgument: the reply is none of its kind. Pure functions.

// GET /version.
StatusOr<RuntimeAccess::Version> ReadEngineVersion(std::string_view body);

// GET /containers/ID/json. kNotFound: the container is no sandbox. One that was created and not
// started yet counts as ready.
StatusOr<SandboxFacts> ReadSandboxFacts(std::string_view body);
// kNotFound: the container is no pod's. The environment has what the image sets in it: dockerd does
// not tell the two apart.
StatusOr<ContainerFacts> ReadContainerFacts(std::string_view body, Others others);

// GET /images/NAME/json.
StatusOr<ImageFacts> ReadImageFacts(std::string_view body);

// The pod that those are in that are no pods' (Others::kShare).
SandboxFacts OthersFacts();

}  // namespace resmgr::docker
