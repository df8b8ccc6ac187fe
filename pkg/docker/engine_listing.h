// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "pkg/docker/engine_client.h"
#include "pkg/docker/engine_inventory.h"
#include "pkg/runtime/runtime_listing.h"

namespace resmgr::docker {

// Take the facts from an inspection, the body of a reply to GET /containers/ID/json.
struct InspectionReaders {
  std::function<Status(std::string_view body, SandboxFacts& listed)> sandbox;
  std::function<Status(std::string_view body, ContainerFacts& listed)> container;
};

// Lists dockerd's pods and containers, and inspects those that are not known. A lost connection
// ends the list with kUnavailable. With kShare the pod of other containers is in the list, without
// an inspection, if such containers are. `done` does not run after the end of `client`.
void ListEngine(EngineClient& client, Others others, Known known, InspectionReaders readers,
                RuntimeListing::Done<RuntimeListing::Result> done);

}  // namespace resmgr::docker
