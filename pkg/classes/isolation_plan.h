// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/classes/class_kind.h"

namespace resmgr {

// Adds the values of the host's files that isolate the containers, except for interrupts
// (interrupt_plan.h). Starts from the values that the files had before this daemon's first write,
// so that the same containers give the same values again. May block.
void PlanIsolation(const ClassWork& work, ClassPlan& plan);

}  // namespace resmgr
