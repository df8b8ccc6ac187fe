// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/status.h"
#include "pkg/model/plan.h"
#include "pkg/model/snapshot.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// What must hold after any plan (pkg/ARCHITECTURE.md, invariants 1 and 2): no change twice or for a
// container that is not in the snapshot; no empty set; CPUs online, memory nodes present; exclusive
// CPUs are CPUs of their container and of nobody else. Internal names the container and the CPUs:
// a policy that breaks one of these has a bug, and its plan must not reach a runtime.
Status CheckPlan(const Machine& machine, const Snapshot& snapshot, const Plan& plan);

}  // namespace resmgr
