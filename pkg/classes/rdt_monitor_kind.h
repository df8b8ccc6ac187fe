// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/classes/class_kind.h"

namespace resmgr {

// Monitoring groups of resctrl for pods whose containers have a class of caches and memory
// bandwidth: "GROUP/mon_groups/PREFIX UID" within the group of the class, with the CPUs or the
// tasks of the pod's containers there. pkg/usage reads what they count. Without an id that is left
// (RMID) the pod has none, and its containers run. After RdtKind, which makes the groups.
std::unique_ptr<ClassKind> MakeRdtMonitorKind();

}  // namespace resmgr
