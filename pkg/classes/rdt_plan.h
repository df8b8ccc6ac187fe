// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_plan.h"

namespace resmgr {

inline constexpr std::string_view kRdt = "rdt";

// How a container comes into its group (ClassPart::way).
inline constexpr std::string_view kRdtByCpu = "by CPU";
inline constexpr std::string_view kRdtByTasks = "by tasks";
inline constexpr std::string_view kRdtByRuntime = "by the runtime";
inline constexpr std::string_view kRdtByStart = "started in its group";

// The directory of a class in resctrl; "" for the root.
std::string RdtGroupOf(std::string_view class_name, const RdtConfig& config);

// Whether the class comes with CPUs that the container has for itself alone.
bool HasOwnRdtCpus(const ClassSubject& subject, const RdtConfig& config);

// Adds the groups, their masks and CPUs, and the parts. Values shrink before others grow. May
// block.
void PlanRdt(const ClassWork& work, ClassPlan& plan);

}  // namespace resmgr
