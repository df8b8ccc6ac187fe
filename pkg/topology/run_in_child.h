// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "pkg/base/status.h"

namespace resmgr {

// Runs `work` in a forked child, which may crash, abort or hang without harm, to find out whether
// it is safe to run here. hwloc trusts the XML that it reads: a file that lacks an attribute makes
// it follow a null pointer. The child's output is lost, and it leaves no core file. Takes about one
// millisecond in a small process.
//
// Returns the status of `work` (code and message); InvalidArgument if the child died or took longer
// than some seconds; Unavailable if no child can be made.
Status RunInChild(const std::function<Status()>& work);

}  // namespace resmgr
