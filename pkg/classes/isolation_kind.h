// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/classes/class_kind.h"

namespace resmgr {

// Keeps disturbances away from the own CPUs of containers (isolation_wish.h, isolation_plan.h).
std::unique_ptr<ClassKind> MakeIsolationKind(const ClassContext& context);

}  // namespace resmgr
