// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/classes/class_kind.h"

namespace resmgr {

// Classes of memory (memory_wish.h): files of containers' cgroups v2 that the runtime sets at
// creation. The worker reads them back.
std::unique_ptr<ClassKind> MakeMemoryKind();

}  // namespace resmgr
