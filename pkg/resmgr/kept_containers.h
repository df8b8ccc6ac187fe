// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/resmgr/state_writer.h"

namespace resmgr {

// Containers of a runtime, of several, that is away when this daemon starts: what an earlier daemon
// noted of them holds their CPUs, and their pods' overhead, until that runtime is listed.

// Adds to a list what is kept of the runtimes that it lacks (Unclear::runtimes). Such a container
// is unclear and counts as running, wherever its notes say. `first`: of the first list since a
// connect; later lists only keep what that one added.
void AddKept(const ContainerStore& store, const StateWriter& state_writer, bool first,
             RuntimeInventory& inventory);

}  // namespace resmgr
