// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "pkg/base/status.h"
#include "pkg/model/plan.h"
#include "pkg/model/snapshot.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// All containers whose placements may have exclusive CPUs; it may also have others.
using ExclusiveHolders = std::set<ContainerKey>;

// Rules for any plan (pkg/ARCHITECTURE.md, invariants 1 and 2): no container is changed twice or
// missing in the snapshot; no set is empty; CPUs are online, memory nodes exist; the exclusive CPUs
// of a container are among its CPUs and no other container has them. The error is Internal and
// names the container and the CPUs: a policy that breaks a rule has a bug, and its plan must not
// reach a runtime.
//
// Examines the changes and the holders; all containers, once, only if the plan takes CPUs away for
// exclusive use or has shared changes.
Status CheckPlan(const Machine& machine, const Snapshot& snapshot, const ExclusiveHolders& holders,
                 const Plan& plan);

// The same check if the holders are not known: examines all containers.
Status CheckPlan(const Machine& machine, const Snapshot& snapshot, const Plan& plan);

}  // namespace resmgr
