// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "pkg/base/status.h"
#include "pkg/model/plan.h"
#include "pkg/model/snapshot.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Every container whose placement may hold exclusive CPUs; others may be named too.
using ExclusiveHolders = std::set<ContainerKey>;

// Rules for any plan (pkg/ARCHITECTURE.md, invariants 1 and 2): no change twice or for a
// container that is not in the snapshot; no empty set; CPUs online, memory nodes present; exclusive
// CPUs are CPUs of their container and of no other. Internal names the container and the CPUs:
// a policy that breaks one of these has a bug, and its plan must not reach a runtime.
//
// Looks at the changes and at the holders; at all containers, once, only when the plan takes CPUs
// away for exclusive use or has shared changes.
Status CheckPlan(const Machine& machine, const Snapshot& snapshot, const ExclusiveHolders& holders,
                 const Plan& plan);

// The same without the holders: looks at all containers.
Status CheckPlan(const Machine& machine, const Snapshot& snapshot, const Plan& plan);

}  // namespace resmgr
