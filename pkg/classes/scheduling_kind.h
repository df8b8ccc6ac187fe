// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/classes/class_context.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/scheduling_threads.h"

namespace resmgr {

// Classes of scheduling: the scheduler and the I/O priority of a container's threads, and the burst
// of its CPU quota. Where the runtime has fields, the threads begin with what the kernel never
// refuses. The worker sets the rest once, before the start where the front door can wait: later
// changes by the container's own programs stay.
std::unique_ptr<ClassKind> MakeSchedulingKind(const ClassContext& context);
// The same kind with other threads, for tests.
std::unique_ptr<ClassKind> MakeSchedulingKind(const ClassContext& context,
                                              std::unique_ptr<ThreadAttributes> threads);

}  // namespace resmgr
