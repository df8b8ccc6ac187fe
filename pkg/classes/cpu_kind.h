// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/classes/class_kind.h"

namespace resmgr {

// Classes of CPUs (docs/classes.md): "cpu".
std::unique_ptr<ClassKind> MakeCpuKind();

}  // namespace resmgr
