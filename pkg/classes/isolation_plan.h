// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/classes/class_plan.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/config/classes_config.h"

namespace resmgr {

// Adds the values of the host's files for these containers, except for interrupts
// (interrupt_plan.h). Plans from the values that files had before our first write, so that the same
// containers give the same values again. May block.
void PlanIsolation(const std::vector<ClassSubject>& subjects, const ClassesConfig& config,
                   HostKeeper& host, ClassPlan& plan);

}  // namespace resmgr
