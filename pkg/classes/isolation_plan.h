// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/classes/class_plan.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/config/classes_config.h"

namespace resmgr {

// Adds what files of the host are to have for these containers, but for interrupts
// (interrupt_plan.h). Reads the host's files with what
// they had before our first write, so that the same containers give the same values again. May
// block.
void PlanIsolation(const std::vector<ClassSubject>& subjects, const ClassesConfig& config,
                   HostKeeper& host, ClassPlan& plan);

}  // namespace resmgr
