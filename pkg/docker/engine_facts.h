// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/docker/engine_client.h"
#include "pkg/docker/engine_inventory.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/runtime/runtime_listing.h"

namespace resmgr::docker {

// Converts dockerd's replies about single objects into the stages' form
// (pkg/pipeline/runtime_access.h). kInvalidArgument: the reply is malformed. Pure functions.

// Reads GET /version.
StatusOr<RuntimeAccess::Version> ReadEngineVersion(std::string_view body);

// Reads GET /containers/ID/json. kNotFound: the container is not a sandbox. A sandbox that was
// created and not started yet counts as ready.
StatusOr<SandboxFacts> ReadSandboxFacts(std::string_view body);
// kNotFound: the container does not belong to a pod. The environment includes the image's
// variables, which dockerd does not list separately.
StatusOr<ContainerFacts> ReadContainerFacts(std::string_view body, Others others);

// Reads GET /images/NAME/json.
StatusOr<ImageFacts> ReadImageFacts(std::string_view body);

// The pod of the containers outside pods (Others::kShare).
SandboxFacts OthersFacts();

// Take the facts from an inspection, the body of a reply to GET /containers/ID/json.
struct InspectionReaders {
  std::function<Status(std::string_view body, SandboxFacts& listed)> sandbox;
  std::function<Status(std::string_view body, ContainerFacts& listed)> container;
};

// Lists dockerd's pods and containers, and inspects those that are not known. A lost connection
// ends the list with kUnavailable. With kShare, if there are containers outside pods, their pod is
// in the list, too, without an inspection. `done` does not run after the end of `client`.
void ListEngine(EngineClient& client, Others others, Known known, InspectionReaders readers,
                RuntimeListing::Done<RuntimeListing::Result> done);

}  // namespace resmgr::docker
