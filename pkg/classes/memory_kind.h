// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/classes/class_context.h"
#include "pkg/classes/class_kind.h"

namespace resmgr {

// Classes of memory (memory_wish.h): files of containers' cgroups v2, which the runtime sets at
// creation. The worker keeps them: it sets what the runtime could not, and follows the container's
// memory limit.
std::unique_ptr<ClassKind> MakeMemoryKind(const ClassContext& context);

}  // namespace resmgr
