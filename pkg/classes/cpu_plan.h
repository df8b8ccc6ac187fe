// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_plan.h"

namespace resmgr {

// Adds the clocks, energy preferences and idle states of CPUs by their classes: a container's with
// CPUs of its own, else that of the pool that they are in. Those classes in use that have the
// highest priority have `turbo`, in each package or in the whole machine, and the others have
// `base` (nri-plugins 0.14). CPUs that have one clock in common have the highest of the rates that
// their classes want. Least and highest rates come in an order in which no one passes the other,
// and an energy preference while the governor lets it be written. May block.
void PlanCpuClasses(const ClassWork& work, ClassPlan& plan);

}  // namespace resmgr
