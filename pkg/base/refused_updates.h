// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// How a container is treated that has to leave CPUs while the runtime refuses to update it.
enum class RefusedUpdates {
  kWait,   // it stays until the runtime takes an update
  kWrite,  // the daemon writes the cpuset into the container's cgroup itself
};

// "wait" or "write".
std::string_view ToString(RefusedUpdates choice);

}  // namespace resmgr
