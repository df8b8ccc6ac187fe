// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/classes/class_plan.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/config/classes_config.h"

namespace resmgr {

// Adds the values of the host's files that isolate these containers, except for interrupts
// (interrupt_plan.h). Starts from the values that the files had before this daemon's first write,
// so that the same containers give the same values again. May block.
void PlanIsolation(const std::vector<ClassSubject>& subjects, const ClassesConfig& config,
                   HostKeeper& host, ClassPlan& plan);

}  // namespace resmgr
