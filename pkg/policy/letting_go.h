// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/model/resources.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The sets for a container that a policy bound and no policy binds any more, since nothing else
// would undo the binding: the CPUs (memory nodes) of its request if this machine has all of them,
// else all of the machine's.
CpuSet CpusWithoutPolicy(const Machine& machine, const LinuxResources& requested);
NodeSet MemsWithoutPolicy(const Machine& machine, const LinuxResources& requested);

}  // namespace resmgr
