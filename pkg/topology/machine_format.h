// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/topology/machine.h"

namespace resmgr {

// The machine as one line of JSON, a fixed outside contract of `cri-resmgr-ctl topology -o json`:
//   {"cpus":[{"id","core","l3","die","numa","package","online","isolated","kind"}],
//    "numa":[{"id","memoryBytes","type","distances":[]}]}
// Ids that a CPU does not have are -1; kind and type are the names of ToString().
std::string MachineToJson(const Machine& machine);

// For people: a summary, a table of NUMA nodes and a table of cores in which neighbours of one kind
// share a row. Ends with a newline.
std::string MachineToTable(const Machine& machine);

}  // namespace resmgr
