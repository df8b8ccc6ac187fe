// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/model/resources.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The sets for a container that a policy bound once and no policy binds any more, for nothing else
// would undo the binding: the CPUs (memory nodes) that its request says, where all of them can be
// had on this machine, and else all that there are.
CpuSet CpusWithoutPolicy(const Machine& machine, const LinuxResources& requested);
NodeSet MemsWithoutPolicy(const Machine& machine, const LinuxResources& requested);

}  // namespace resmgr
