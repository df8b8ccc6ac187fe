// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_plan.h"

namespace resmgr {

// Adds the clocks, energy preferences and idle states of CPUs. A CPU follows the class of the
// container that has it for itself, else the class of its pool. In each package, or in the whole
// machine, the classes with the highest priority in use get `turbo`, and the others `base`
// (nri-plugins 0.14). CPUs with a common clock get the highest rate that one of their classes
// wants. Least and highest rates are written in an order in which the least never exceeds the
// highest, and an energy preference while the governor allows it. May block.
void PlanCpuClasses(const ClassWork& work, ClassPlan& plan);

}  // namespace resmgr
