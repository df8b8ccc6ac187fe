// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"

namespace resmgr {

// Tells what an administrator can do about a container that the runtime does not update. `why` is
// the runtime's answer, OK where there was none yet. Example: "set cpu.idle to 0 in its cgroup, or
// delete pod ns/x".
std::string UpdateRemedy(const Pod& pod, const Container& container, const Status& why);

}  // namespace resmgr
