// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/classes/class_context.h"
#include "pkg/classes/class_kind.h"

namespace resmgr {

// Classes of block I/O: limits and weights of disks in the containers' cgroups (blockio_limits.h).
// The runtime sets at creation what it can, and the worker the rest, before the start where the
// front door can wait. The globs of devices are looked up with each plan.
std::unique_ptr<ClassKind> MakeBlockioKind(const ClassContext& context);
// The same kind with other devices, for tests.
std::unique_ptr<ClassKind> MakeBlockioKind(const ClassContext& context,
                                           std::unique_ptr<BlockDevices> devices);

}  // namespace resmgr
