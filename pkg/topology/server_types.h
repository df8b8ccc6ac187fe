// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "pkg/base/units.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// A server that can be bought or rented, so that placements can be tried for it by name. Numbers of
// cores, caches and threads are those of the makers' data sheets.
struct ServerType {
  std::string_view name;         // "epyc-9654-2s"; -topology takes it
  std::string_view description;  // for people
  // hwloc's notation; CPU numbers as Linux gives them: the first thread of each core, then the
  // second ones.
  std::string_view synthetic;
  // Distances between two NUMA nodes, as the firmware reports them (10 is local).
  int same_package = 12;
  int other_package = 32;
};

// Sorted by name.
std::span<const ServerType> ServerTypes();

// nullptr where no server type has the name.
const ServerType* FindServerType(std::string_view name);

// Sets the distances between the nodes of this type, which hwloc's notation lacks.
void Complete(const ServerType& type, Machine::Parts& parts);

}  // namespace resmgr
