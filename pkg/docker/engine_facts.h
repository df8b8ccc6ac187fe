// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"
#include "pkg/docker/engine_inventory.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::docker {

// Converts dockerd's replies about single objects into the stages' form
// (pkg/pipeline/runtime_access.h). kInvalidArgument: the reply is malformed. Pure functions.

// Reads GET /version.
StatusOr<RuntimeAccess::Version> ReadEngineVersion(std::string_view body);

// Reads GET /containers/ID/json. kNotFound: the container is not a sandbox. A sandbox that was
// created and not started yet counts as ready.
StatusOr<SandboxFacts> ReadSandboxFacts(std::string_view body);
// kNotFound: the container does not belong to a pod. The environment includes the image's
// variables, which dockerd does not list apart.
StatusOr<ContainerFacts> ReadContainerFacts(std::string_view body, Others others);

// Reads GET /images/NAME/json.
StatusOr<ImageFacts> ReadImageFacts(std::string_view body);

// The pod of the containers outside pods (Others::kShare).
SandboxFacts OthersFacts();

}  // namespace resmgr::docker
