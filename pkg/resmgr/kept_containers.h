// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/resmgr/state_writer.h"

namespace resmgr {

// Containers of one of several runtimes that is away when this daemon starts: an earlier daemon's
// notes hold their CPUs, and their pods' overhead, until that runtime is listed.

// Adds the saved containers of the runtimes that a list lacks (Unclear::runtimes). Such a container
// is unclear and counts as running at the place of its notes. `first` is true for the first list
// since a connect; later lists only keep the containers that the first one added.
void AddKept(const ContainerStore& store, const StateWriter& state_writer, bool first,
             RuntimeInventory& inventory);

}  // namespace resmgr
